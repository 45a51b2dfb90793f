-- Lock order of all functions: topics, logs in order of (topic, partition), objects in order of key.
-- A function that inserts an object's key does so first; no other transaction holds that key for long.

create table moldau.topics (
    id uuid primary key,
    -- Null once the topic is deleted; its rows then wait for the sweep.
    name text unique,
    partitions integer not null check (partitions > 0)
);
create index topics_deleted on moldau.topics (id) where name is null;

-- A log has a row from its first append, trim or move on.
create table moldau.logs (
    topic uuid not null,
    partition integer not null,
    start_offset bigint not null default 0,
    -- The next offset to be assigned. Rows of batches are visible with it, so it is the high watermark.
    next_offset bigint not null default 0,
    -- Bytes ever appended.
    end_bytes bigint not null default 0,
    -- Greatest timestamp ever appended.
    peak_timestamp bigint not null default -1,
    leader integer,
    leader_epoch integer not null default 0,
    primary key (topic, partition)
) with (fillfactor = 50);

-- A late commit of a key without a row would bring back a deleted object, so a key stays until no
-- commit can name it.
create table moldau.objects (
    key uuid primary key,
    -- Order of the first requests that named the keys, which is about that of their commits.
    sequence bigint generated always as identity,
    -- Rows of batches that name the object; dead without any.
    live integer not null,
    deleted boolean not null default false,
    -- Answers to the commit, per batch; null if the key was condemned before any commit.
    codes smallint[],
    base_offsets bigint[],
    start_offsets bigint[]
) with (fillfactor = 70);
create index objects_dead on moldau.objects (key) where live = 0 and not deleted;
-- Objects of a swap have no answers.
create index objects_unsorted on moldau.objects (sequence) where live > 0 and cardinality(codes) > 0;

-- A row is one byte range of an object: batches of one log that follow one another.
create table moldau.batches (
    topic uuid not null,
    partition integer not null,
    base_offset bigint not null,
    last_offset bigint not null,
    object uuid not null,
    position bigint not null,
    size integer not null,
    leader_epoch integer not null,
    -- Whether the batches in the object hold their offsets.
    sorted boolean not null,
    max_timestamp bigint not null,
    -- Greatest timestamp, and bytes ever appended, of the log up to here.
    peak_timestamp bigint not null,
    end_bytes bigint not null,
    primary key (topic, partition, last_offset)
);
-- Rows that are not sorted are few, so this is small.
create index batches_unsorted on moldau.batches (object) where not sorted;
create index batches_time on moldau.batches (topic, partition, peak_timestamp, last_offset);

-- Marks: first sequence, last sequence and base offset of the last five batches, oldest first.
create table moldau.producers (
    topic uuid not null,
    partition integer not null,
    producer_id bigint not null,
    epoch smallint not null,
    marks bigint[] not null,
    last_timestamp bigint not null,
    primary key (topic, partition, producer_id)
) with (fillfactor = 70);

-- Logs with rows below their start offset.
create table moldau.sweeps (
    topic uuid not null,
    partition integer not null,
    primary key (topic, partition)
);

-- Gives each log a row, and locks the rows. Logs of unknown topics get none.
create function moldau.lock_logs(p_topics uuid[], p_partitions integer[]) returns void
language plpgsql as $$
begin
    perform 1 from moldau.topics t
        where t.id = any (p_topics) and t.name is not null order by t.id for key share;
    insert into moldau.logs (topic, partition)
        select distinct u.topic, u.partition
        from unnest(p_topics, p_partitions) u (topic, partition)
        join moldau.topics t on t.id = u.topic
        where t.name is not null and u.partition >= 0 and u.partition < t.partitions
            and not exists (select from moldau.logs l
                where l.topic = u.topic and l.partition = u.partition)
        order by 1, 2
        on conflict do nothing;
    perform 1 from moldau.logs l
        where (l.topic, l.partition) in (select * from unnest(p_topics, p_partitions))
        order by l.topic, l.partition for update;
end $$;

-- Codes are those of Kafka: 0 appended, 3 unknown topic or partition, 45 out of order sequence,
-- 46 duplicate with the offset of the first time, 47 invalid producer epoch, 74 fenced leader epoch,
-- 76 unknown leader epoch. Raises MD001 if the object is dead.
create function moldau.commit(
    p_key uuid, p_topics uuid[], p_partitions integer[], p_leader_epochs integer[],
    p_positions bigint[], p_sizes integer[], p_counts integer[], p_timestamps bigint[],
    p_producers bigint[], p_producer_epochs smallint[], p_firsts integer[], p_lasts integer[]
) returns table (code smallint, base_offset bigint, start_offset bigint)
language plpgsql as $$
declare
    b record;
    log record;
    producer record;
    current_topic uuid;
    current_partition integer;
    known boolean;
    verdict smallint;
    base bigint;
    marks bigint[];
    -- Appended logs, and their values after the commit.
    m integer := 0;
    log_topics uuid[] := '{}';
    log_partitions integer[] := '{}';
    nexts bigint[] := '{}';
    ends bigint[] := '{}';
    peaks bigint[] := '{}';
    -- Rows of batches to insert.
    n integer := 0;
    row_logs integer[] := '{}';
    row_bases bigint[] := '{}';
    row_lasts bigint[] := '{}';
    row_positions bigint[] := '{}';
    row_sizes integer[] := '{}';
    row_epochs integer[] := '{}';
    row_timestamps bigint[] := '{}';
    row_peaks bigint[] := '{}';
    row_ends bigint[] := '{}';
    verdicts smallint[] := array_fill(3::smallint, array[cardinality(p_topics)]);
    bases bigint[] := array_fill(-1::bigint, array[cardinality(p_topics)]);
    starts bigint[] := array_fill(-1::bigint, array[cardinality(p_topics)]);
begin
    insert into moldau.objects (key, live) values (p_key, 0) on conflict do nothing;
    if not found then
        select o.codes, o.base_offsets, o.start_offsets into verdicts, bases, starts
            from moldau.objects o where o.key = p_key;
        if verdicts is null then
            raise exception 'object % is dead', p_key using errcode = 'MD001';
        end if;
        return query select * from unnest(verdicts, bases, starts);
        return;
    end if;
    perform moldau.lock_logs(p_topics, p_partitions);
    for b in
        select * from unnest(p_topics, p_partitions, p_leader_epochs, p_positions, p_sizes, p_counts,
            p_timestamps, p_producers, p_producer_epochs, p_firsts, p_lasts) with ordinality
            as u (topic, partition, leader_epoch, position, size, count,
                max_timestamp, producer, epoch, first, last, i)
        order by u.topic, u.partition, u.i
    loop
        if current_topic is distinct from b.topic or current_partition is distinct from b.partition then
            current_topic := b.topic;
            current_partition := b.partition;
            select l.* into log from moldau.logs l join moldau.topics t on t.id = l.topic
                where l.topic = b.topic and l.partition = b.partition and t.name is not null;
            known := found;
            if known then
                m := m + 1;
                log_topics[m] := b.topic;
                log_partitions[m] := b.partition;
                nexts[m] := log.next_offset;
                ends[m] := log.end_bytes;
                peaks[m] := log.peak_timestamp;
            end if;
        end if;
        continue when not known;
        starts[b.i] := log.start_offset;
        if b.leader_epoch >= 0 and b.leader_epoch <> log.leader_epoch then
            verdicts[b.i] := case when b.leader_epoch < log.leader_epoch then 74 else 76 end;
            continue;
        end if;
        verdict := 0;
        base := nexts[m];
        if b.producer >= 0 then
            marks := '{}';
            select p.epoch, p.marks into producer from moldau.producers p
                where p.topic = b.topic and p.partition = b.partition and p.producer_id = b.producer;
            if found then
                if b.epoch < producer.epoch then
                    verdict := 47;
                elsif b.epoch > producer.epoch then
                    verdict := case when b.first = 0 then 0 else 45 end;
                else
                    marks := producer.marks;
                    for j in 0 .. cardinality(marks) / 3 - 1 loop
                        if marks[3 * j + 1] = b.first and marks[3 * j + 2] = b.last then
                            verdict := 46;
                            base := marks[3 * j + 3];
                        end if;
                    end loop;
                    -- Sequences follow 2147483647 with 0.
                    if verdict = 0 and b.first <> (marks[cardinality(marks) - 1] + 1) % 2147483648 then
                        verdict := 45;
                    end if;
                end if;
            end if;
            if verdict = 0 then
                if cardinality(marks) = 15 then
                    marks := marks[4:];
                end if;
                marks := marks || array[b.first, b.last, base];
                insert into moldau.producers
                    values (b.topic, b.partition, b.producer, b.epoch, marks, b.max_timestamp)
                    on conflict (topic, partition, producer_id) do update
                    set epoch = b.epoch, marks = excluded.marks, last_timestamp = b.max_timestamp;
            end if;
        end if;
        verdicts[b.i] := verdict;
        continue when verdict not in (0, 46);
        bases[b.i] := base;
        continue when verdict = 46;
        ends[m] := ends[m] + b.size;
        peaks[m] := greatest(peaks[m], b.max_timestamp);
        nexts[m] := base + b.count;
        if n > 0 and row_logs[n] = m and row_positions[n] + row_sizes[n] = b.position then
            row_sizes[n] := row_sizes[n] + b.size;
            row_timestamps[n] := greatest(row_timestamps[n], b.max_timestamp);
        else
            n := n + 1;
            row_logs[n] := m;
            row_bases[n] := base;
            row_positions[n] := b.position;
            row_sizes[n] := b.size;
            row_epochs[n] := log.leader_epoch;
            row_timestamps[n] := b.max_timestamp;
        end if;
        row_lasts[n] := base + b.count - 1;
        row_peaks[n] := peaks[m];
        row_ends[n] := ends[m];
    end loop;
    insert into moldau.batches
        select log_topics[r.log], log_partitions[r.log], r.base, r.last, p_key, r.position, r.size,
            r.epoch, false, r.timestamp, r.peak, r.end
        from unnest(row_logs, row_bases, row_lasts, row_positions, row_sizes, row_epochs,
            row_timestamps, row_peaks, row_ends)
            as r (log, base, last, position, size, epoch, timestamp, peak, "end");
    update moldau.logs l
        set next_offset = u.next, end_bytes = u.end, peak_timestamp = u.peak
        from unnest(log_topics, log_partitions, nexts, ends, peaks)
            as u (topic, partition, next, "end", peak)
        where l.topic = u.topic and l.partition = u.partition and l.next_offset <> u.next;
    update moldau.objects o
        set live = n, codes = verdicts, base_offsets = bases, start_offsets = starts
        where o.key = p_key;
    return query select * from unnest(verdicts, bases, starts);
end $$;

-- Takes rows from objects: `p_keys` names the object of each.
create function moldau.release(p_keys uuid[]) returns void language plpgsql as $$
begin
    perform 1 from moldau.objects o where o.key = any (p_keys) order by o.key for update;
    update moldau.objects o set live = o.live - u.rows
        from (select k.key, count(*)::integer as rows from unnest(p_keys) k (key) group by k.key) u
        where o.key = u.key;
end $$;

-- Moves the start offset, and leaves the rows below it to the sweep. Raises MD002 if there is no
-- such log, MD003 if the offset is beyond the high watermark. -1 is the high watermark.
create function moldau.trim(p_topic uuid, p_partition integer, p_before bigint) returns bigint
language plpgsql as $$
declare
    log record;
    start bigint;
begin
    perform moldau.lock_logs(array[p_topic], array[p_partition]);
    select l.* into log from moldau.logs l join moldau.topics t on t.id = l.topic
        where l.topic = p_topic and l.partition = p_partition and t.name is not null;
    if not found then
        raise exception 'no log % %', p_topic, p_partition using errcode = 'MD002';
    end if;
    start := case when p_before = -1 then log.next_offset else p_before end;
    if start < 0 or start > log.next_offset then
        raise exception 'offset % is not in the log', p_before using errcode = 'MD003';
    end if;
    if start <= log.start_offset then
        return log.start_offset;
    end if;
    update moldau.logs l set start_offset = start
        where l.topic = p_topic and l.partition = p_partition;
    insert into moldau.sweeps values (p_topic, p_partition) on conflict do nothing;
    return start;
end $$;

-- Trims the leading rows that are older than a timestamp, or that leave at least `p_bytes`. Null is no limit.
create function moldau.retain(p_topic uuid, p_partition integer, p_timestamp bigint, p_bytes bigint)
returns bigint language plpgsql as $$
declare
    log record;
    start bigint;
begin
    select l.* into log from moldau.logs l where l.topic = p_topic and l.partition = p_partition;
    if not found then
        return 0;
    end if;
    -- Reads the rows that go, and one more.
    select b.base_offset into start from moldau.batches b
        where b.topic = p_topic and b.partition = p_partition and b.last_offset >= log.start_offset
            and b.max_timestamp >= coalesce(p_timestamp, -1)
            and log.end_bytes - b.end_bytes < coalesce(p_bytes, 9223372036854775807)
        order by b.last_offset limit 1;
    return moldau.trim(p_topic, p_partition, coalesce(start, log.next_offset));
end $$;

-- Removes rows of one trimmed log, or of one deleted topic; whether there was any work.
create function moldau.sweep(p_rows integer) returns boolean language plpgsql as $$
declare
    job record;
    keys uuid[];
begin
    select s.topic, s.partition, l.start_offset into job
        from moldau.sweeps s left join moldau.logs l using (topic, partition)
        limit 1 for update of s skip locked;
    if found then
        with gone as (
            delete from moldau.batches b using (
                select c.topic, c.partition, c.last_offset from moldau.batches c
                    where c.topic = job.topic and c.partition = job.partition
                        and c.last_offset < job.start_offset
                    order by c.last_offset limit p_rows for update) d
            where b.topic = d.topic and b.partition = d.partition and b.last_offset = d.last_offset
            returning b.object)
        select coalesce(array_agg(gone.object), '{}') into keys from gone;
        perform moldau.release(keys);
        if cardinality(keys) < p_rows then
            delete from moldau.sweeps s where s.topic = job.topic and s.partition = job.partition;
        end if;
        return true;
    end if;
    select t.id into job from moldau.topics t where t.name is null limit 1 for update skip locked;
    if not found then
        return false;
    end if;
    with gone as (
        delete from moldau.batches b using (
            select c.topic, c.partition, c.last_offset from moldau.batches c
                where c.topic = job.id limit p_rows for update) d
        where b.topic = d.topic and b.partition = d.partition and b.last_offset = d.last_offset
        returning b.object)
    select coalesce(array_agg(gone.object), '{}') into keys from gone;
    perform moldau.release(keys);
    if cardinality(keys) > 0 then
        return true;
    end if;
    delete from moldau.producers p where p.ctid = any (array(
        select q.ctid from moldau.producers q where q.topic = job.id limit p_rows));
    if found then
        return true;
    end if;
    delete from moldau.logs p where p.ctid = any (array(
        select q.ctid from moldau.logs q where q.topic = job.id limit p_rows));
    if found then
        return true;
    end if;
    delete from moldau.topics t where t.id = job.id;
    return true;
end $$;

-- Replaces rows by those of a sorted object in one transaction. Raises MD001 if the key exists and
-- is dead, MD004 if a source is no longer there; asked again with its key it does nothing.
create function moldau.swap(
    p_key uuid, p_old_topics uuid[], p_old_partitions integer[], p_old_lasts bigint[], p_old_objects uuid[],
    p_topics uuid[], p_partitions integer[], p_bases bigint[], p_lasts bigint[], p_positions bigint[],
    p_sizes integer[], p_leader_epochs integer[], p_timestamps bigint[]
) returns void language plpgsql as $$
declare
    gone integer;
    placed integer;
begin
    insert into moldau.objects (key, live, codes, base_offsets, start_offsets)
        values (p_key, cardinality(p_topics), '{}', '{}', '{}') on conflict do nothing;
    if not found then
        if (select o.codes is null from moldau.objects o where o.key = p_key) then
            raise exception 'object % is dead', p_key using errcode = 'MD001';
        end if;
        return;
    end if;
    perform moldau.lock_logs(p_old_topics, p_old_partitions);
    with deleted as (
        -- Rows below the start offset belong to the sweep.
        delete from moldau.batches b
            using unnest(p_old_topics, p_old_partitions, p_old_lasts, p_old_objects)
                as u (topic, partition, last, object), moldau.logs l
            where b.topic = u.topic and b.partition = u.partition and b.last_offset = u.last
                and b.object = u.object and l.topic = u.topic and l.partition = u.partition
                and b.last_offset >= l.start_offset
            returning b.*),
    inserted as (
        -- A row takes the place of the sources that it covers, so it ends with the last of them.
        insert into moldau.batches
            select u.topic, u.partition, u.base, u.last, p_key, u.position, u.size, u.leader_epoch,
                true, u.max_timestamp, d.peak_timestamp, d.end_bytes
            from unnest(p_topics, p_partitions, p_bases, p_lasts, p_positions, p_sizes,
                p_leader_epochs, p_timestamps)
                as u (topic, partition, base, last, position, size, leader_epoch, max_timestamp)
            join deleted d
                on d.topic = u.topic and d.partition = u.partition and d.last_offset = u.last
            returning 1)
    select (select count(*) from deleted), (select count(*) from inserted) into gone, placed;
    if gone <> cardinality(p_old_topics) or placed <> cardinality(p_topics) then
        raise exception 'sources have changed' using errcode = 'MD004';
    end if;
    perform moldau.release(p_old_objects);
end $$;

-- Makes keys dead that no commit has used; returns those that are dead. An object may be back after
-- its deletion, as a PUT can take effect late.
create function moldau.condemn(p_keys uuid[]) returns setof uuid language plpgsql as $$
begin
    insert into moldau.objects (key, live)
        select distinct k.key, 0 from unnest(p_keys) k (key) order by 1 on conflict do nothing;
    return query select o.key from moldau.objects o
        where o.key = any (p_keys) and o.live = 0 order by 1;
end $$;

-- Gives logs another leader, and each a greater epoch.
create function moldau.move(p_topics uuid[], p_partitions integer[], p_leader integer) returns integer
language plpgsql as $$
declare
    moved integer;
begin
    perform moldau.lock_logs(p_topics, p_partitions);
    update moldau.logs l set leader = p_leader, leader_epoch = l.leader_epoch + 1
        from moldau.topics t
        where (l.topic, l.partition) in (select * from unnest(p_topics, p_partitions))
            and t.id = l.topic and t.name is not null;
    get diagnostics moved = row_count;
    return moved;
end $$;

-- Raises MD005 if the name is taken.
create function moldau.create_topic(p_id uuid, p_name text, p_partitions integer) returns void
language plpgsql as $$
begin
    insert into moldau.topics values (p_id, p_name, p_partitions) on conflict (name) do nothing;
    if not found then
        raise exception 'topic % exists', p_name using errcode = 'MD005';
    end if;
end $$;

-- Waits for commits under way. Raises MD002 if there is no such topic.
create function moldau.delete_topic(p_id uuid) returns void language plpgsql as $$
begin
    perform 1 from moldau.topics t where t.id = p_id and t.name is not null for update;
    if not found then
        raise exception 'no topic %', p_id using errcode = 'MD002';
    end if;
    update moldau.topics t set name = null where t.id = p_id;
end $$;
