-- One row: the log of frames and its owner. Appends lock it, so they are in order.
create table moldau.frame_log (
    one boolean primary key default true check (one),
    cluster_id uuid not null default gen_random_uuid(),
    broker integer not null default -1,
    -- Greater with each owner; what an earlier one asks is refused.
    epoch bigint not null default 0,
    address text not null default '',
    next_sequence bigint not null default 0,
    -- Frames below it gave way to a snapshot.
    first_sequence bigint not null default 0
) with (fillfactor = 10);
insert into moldau.frame_log default values;

create table moldau.frames (
    sequence bigint primary key,
    epoch bigint not null,
    bytes bytea not null
);

create table moldau.frame_snapshots (
    sequence bigint primary key,
    bytes bytea not null
);

-- Rows of brokers that ended stay; the session lock of the id says which are alive.
create table moldau.brokers (
    id integer primary key check (id >= 0),
    host text not null,
    port integer not null,
    rack text
);

-- Session locks have two numbers: 1836018788 is the ownership of the frames, and 0; 1836018789 is
-- a broker, and its id.
create view moldau.session_locks as
    select l.classid::bigint as class, l.objid::bigint as id
    from pg_locks l
    where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
        and l.database = (select d.oid from pg_database d where d.datname = current_database());

-- No row if another session owns the log. The lock lasts as long as the session of the caller.
create function moldau.claim_frames(p_broker integer, p_address text)
returns table (epoch bigint, next_sequence bigint) language plpgsql as $$
begin
    if pg_try_advisory_lock(1836018788, 0) then
        return query update moldau.frame_log l
            set epoch = l.epoch + 1, broker = p_broker, address = p_address
            returning l.epoch, l.next_sequence;
    end if;
end $$;

-- Whether the broker is registered. The lock lasts as long as the session of the caller.
create function moldau.register(p_id integer, p_host text, p_port integer, p_rack text) returns boolean
language plpgsql as $$
begin
    if not pg_try_advisory_lock(1836018789, p_id) then
        return false;
    end if;
    insert into moldau.brokers values (p_id, p_host, p_port, p_rack)
        on conflict (id) do update set host = p_host, port = p_port, rack = p_rack;
    return true;
end $$;

-- Locks the log for the epoch, and returns the next sequence. Raises MD006 with the newest epoch.
create function moldau.lock_frames(p_epoch bigint) returns bigint language plpgsql as $$
declare
    log record;
begin
    select l.* into log from moldau.frame_log l for update;
    if log.epoch <> p_epoch then
        raise exception 'epoch % is over', p_epoch using errcode = 'MD006', detail = log.epoch::text;
    end if;
    return log.next_sequence;
end $$;

-- Raises MD006, and MD007 with the next sequence if the frames do not continue the log.
create function moldau.append_frames(p_epoch bigint, p_first bigint, p_frames bytea[]) returns void
language plpgsql as $$
declare
    following bigint := moldau.lock_frames(p_epoch);
    -- Frames that are in the log from an earlier attempt.
    there integer := greatest(least(following - p_first, cardinality(p_frames)), -1);
begin
    if there < 0 or there <> (
        select count(*) from unnest(p_frames[:there]) with ordinality as u (bytes, i)
            join moldau.frames f on f.sequence = p_first + u.i - 1
            where f.epoch = p_epoch and f.bytes = u.bytes)
    then
        raise exception 'frame % does not follow', p_first
            using errcode = 'MD007', detail = following::text;
    end if;
    if there = cardinality(p_frames) then
        return;
    end if;
    insert into moldau.frames
        select p_first + u.i - 1, p_epoch, u.bytes
        from unnest(p_frames) with ordinality as u (bytes, i) where u.i > there;
    update moldau.frame_log set next_sequence = p_first + cardinality(p_frames);
end $$;

-- Raises MD006, and MD007 with the next sequence if the snapshot is beyond the log.
create function moldau.put_frame_snapshot(p_epoch bigint, p_sequence bigint, p_bytes bytea)
returns void language plpgsql as $$
declare
    following bigint := moldau.lock_frames(p_epoch);
begin
    if p_sequence < 0 or p_sequence > following then
        raise exception 'no frame before %', p_sequence
            using errcode = 'MD007', detail = following::text;
    end if;
    update moldau.frame_log set first_sequence = p_sequence where first_sequence <= p_sequence;
    if not found then
        return;
    end if;
    delete from moldau.frame_snapshots s where s.sequence <= p_sequence;
    insert into moldau.frame_snapshots values (p_sequence, p_bytes);
    delete from moldau.frames f where f.sequence < p_sequence;
end $$;
