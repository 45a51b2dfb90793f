-- The decision is the number of the last marker, which is at `marker_offset`: one with this number
-- or a lower one is there already.
alter table moldau.producers
    add column decision bigint not null default -1,
    add column marker_offset bigint not null default -1;

-- Transactions without a marker. Rows change under the lock of their log.
create table moldau.open_transactions (
    topic uuid not null,
    partition integer not null,
    producer_id bigint not null,
    first_offset bigint not null,
    primary key (topic, partition, producer_id)
);
create index open_transactions_first on moldau.open_transactions (topic, partition, first_offset);

-- Transactions that a marker at `last_offset` aborted.
create table moldau.aborted_transactions (
    topic uuid not null,
    partition integer not null,
    last_offset bigint not null,
    first_offset bigint not null,
    producer_id bigint not null,
    -- What ended later began here or behind.
    first_open bigint not null,
    primary key (topic, partition, last_offset)
);

-- First offset of the open transactions of a log; null if there are none.
create function moldau.first_open(p_topic uuid, p_partition integer) returns bigint
language sql stable as $$
    select min(t.first_offset) from moldau.open_transactions t
        where t.topic = p_topic and t.partition = p_partition
$$;

-- Codes are those of Kafka: 0 appended, 3 unknown topic or partition, 45 out of order sequence,
-- 46 duplicate with the offset of the first time, 47 invalid producer epoch, 74 fenced leader epoch,
-- 48 invalid transaction state, 76 unknown leader epoch. Parts: 0 outside of a transaction, 1 in one,
-- 2 and 3 markers that abort and commit. Raises MD001 if the object is dead.
create function moldau.commit(
    p_key uuid, p_topics uuid[], p_partitions integer[], p_leader_epochs integer[],
    p_positions bigint[], p_sizes integer[], p_counts integer[], p_timestamps bigint[],
    p_producers bigint[], p_producer_epochs smallint[], p_firsts integer[], p_lasts integer[],
    p_parts smallint[], p_decisions bigint[]
) returns table (code smallint, base_offset bigint, start_offset bigint)
language plpgsql as $$
declare
    b record;
    log record;
    producer record;
    current_topic uuid;
    current_partition integer;
    known boolean;
    -- Whether the log has open transactions, and the first offset of that of the producer.
    is_open boolean;
    opened bigint;
    producer_known boolean;
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
            p_timestamps, p_producers, p_producer_epochs, p_firsts, p_lasts, p_parts, p_decisions)
            with ordinality as u (topic, partition, leader_epoch, position, size, count,
                max_timestamp, producer, epoch, first, last, part, decision, i)
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
                is_open := exists (select from moldau.open_transactions t
                    where t.topic = b.topic and t.partition = b.partition);
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
            opened := null;
            if is_open then
                select t.first_offset into opened from moldau.open_transactions t
                    where t.topic = b.topic and t.partition = b.partition
                        and t.producer_id = b.producer;
            end if;
            select p.epoch, p.marks, p.decision, p.marker_offset into producer
                from moldau.producers p
                where p.topic = b.topic and p.partition = b.partition and p.producer_id = b.producer;
            producer_known := found;
            if producer_known and b.epoch = producer.epoch then
                marks := producer.marks;
            end if;
            if producer_known and b.part >= 2 and b.decision >= 0 and b.decision <= producer.decision then
                -- It ended its transaction already; the one that is open is a later one.
                verdict := 46;
                base := producer.marker_offset;
            elsif producer_known and b.epoch < producer.epoch then
                verdict := 47;
            elsif b.part >= 2 then
                verdict := 0;
            elsif producer_known and b.epoch > producer.epoch then
                verdict := case when b.first = 0 then 0 else 45 end;
            elsif producer_known then
                for j in 0 .. cardinality(marks) / 3 - 1 loop
                    if marks[3 * j + 1] = b.first and marks[3 * j + 2] = b.last then
                        verdict := 46;
                        base := marks[3 * j + 3];
                    end if;
                end loop;
                -- Sequences follow 2147483647 with 0, and begin with 0 behind a transaction that
                -- took them along.
                if verdict = 0 and b.first <>
                    (coalesce(marks[cardinality(marks) - 1], -1) + 1) % 2147483648
                then
                    verdict := 45;
                end if;
            end if;
            if verdict = 0 and b.part = 0 and opened is not null then
                verdict := 48;
            end if;
            if verdict = 0 then
                if b.part < 2 then
                    if cardinality(marks) = 15 then
                        marks := marks[4:];
                    end if;
                    marks := marks || array[b.first, b.last, base];
                end if;
                insert into moldau.producers (topic, partition, producer_id, epoch, marks,
                        last_timestamp, decision, marker_offset)
                    values (b.topic, b.partition, b.producer, b.epoch, marks, b.max_timestamp,
                        case when b.part >= 2 then b.decision else -1 end, base)
                    on conflict (topic, partition, producer_id) do update
                    set epoch = excluded.epoch, marks = excluded.marks,
                        last_timestamp = excluded.last_timestamp,
                        decision = greatest(producers.decision, excluded.decision),
                        marker_offset = case when excluded.decision > producers.decision
                            then excluded.marker_offset else producers.marker_offset end;
                if b.part = 1 and opened is null then
                    insert into moldau.open_transactions
                        values (b.topic, b.partition, b.producer, base);
                    is_open := true;
                elsif b.part >= 2 and opened is not null then
                    delete from moldau.open_transactions t
                        where t.topic = b.topic and t.partition = b.partition
                            and t.producer_id = b.producer;
                    if b.part = 2 then
                        insert into moldau.aborted_transactions
                            select b.topic, b.partition, base, opened, b.producer,
                                coalesce(min(t.first_offset), base + 1)
                            from moldau.open_transactions t
                            where t.topic = b.topic and t.partition = b.partition;
                    end if;
                end if;
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

-- Trims the leading rows that are older than a timestamp, or that leave at least `p_bytes`. Null is no limit.
-- What is not decided yet stays.
create or replace function moldau.retain(p_topic uuid, p_partition integer, p_timestamp bigint, p_bytes bigint)
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
    return moldau.trim(p_topic, p_partition, least(
        coalesce(start, log.next_offset),
        greatest(log.start_offset, coalesce(moldau.first_open(p_topic, p_partition), log.next_offset))));
end $$;

-- Removes rows of one trimmed log, or of one deleted topic; whether there was any work.
create or replace function moldau.sweep(p_rows integer) returns boolean language plpgsql as $$
declare
    job record;
    keys uuid[];
    transactions integer;
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
        delete from moldau.aborted_transactions p where p.ctid = any (array(
            select q.ctid from moldau.aborted_transactions q
            where q.topic = job.topic and q.partition = job.partition
                and q.last_offset < job.start_offset limit p_rows));
        get diagnostics transactions = row_count;
        if cardinality(keys) < p_rows and transactions < p_rows then
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
    delete from moldau.aborted_transactions p where p.ctid = any (array(
        select q.ctid from moldau.aborted_transactions q where q.topic = job.id limit p_rows));
    if found then
        return true;
    end if;
    delete from moldau.open_transactions p where p.ctid = any (array(
        select q.ctid from moldau.open_transactions q where q.topic = job.id limit p_rows));
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

-- As programs ask that know no transactions.
create or replace function moldau.commit(
    p_key uuid, p_topics uuid[], p_partitions integer[], p_leader_epochs integer[],
    p_positions bigint[], p_sizes integer[], p_counts integer[], p_timestamps bigint[],
    p_producers bigint[], p_producer_epochs smallint[], p_firsts integer[], p_lasts integer[]
) returns table (code smallint, base_offset bigint, start_offset bigint)
language sql as $$
    select * from moldau.commit(p_key, p_topics, p_partitions, p_leader_epochs, p_positions, p_sizes,
        p_counts, p_timestamps, p_producers, p_producer_epochs, p_firsts, p_lasts,
        array_fill(0::smallint, array[cardinality(p_topics)]),
        array_fill(-1::bigint, array[cardinality(p_topics)]))
$$;
