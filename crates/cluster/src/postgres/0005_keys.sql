-- Keys of objects end with 32 bits, their generation. A key of before the last generation cannot be
-- inserted any more, so that rows of such keys can be removed once their objects are deleted: no
-- late commit brings them back. Time only spares work; nothing depends on it.
create table moldau.generations (
    one boolean primary key default true check (one),
    current bigint not null default 1,
    begun timestamptz not null default now()
);
insert into moldau.generations default values;

-- Dead keys whose objects are deleted.
create table moldau.spent_keys (
    generation bigint not null,
    key uuid not null,
    primary key (generation, key)
);

create function moldau.generation(p_key uuid) returns bigint language sql immutable as $$
    select ('x' || right(p_key::text, 8))::bit(32)::bigint
$$;

-- Commits and swaps hold the lock until they end, so a generation begins between them. Raises MD008.
create function moldau.admit_key() returns trigger language plpgsql as $$
begin
    if current_setting('moldau.condemns', true) = 'on' then
        return null;
    end if;
    perform pg_advisory_xact_lock_shared(7237089354392);
    if moldau.generation(new.key) < (select g.current - 1 from moldau.generations g) then
        raise exception 'key % has expired', new.key using errcode = 'MD008';
    end if;
    return null;
end $$;
create trigger admit_key after insert on moldau.objects
    for each row execute function moldau.admit_key();

-- Keys of any generation can be condemned: nothing is committed with them.
alter function moldau.condemn(uuid[]) set moldau.condemns = 'on';

-- Begins a generation if the last one is this old.
create function moldau.begin_generation(p_age_ms bigint) returns void language plpgsql as $$
begin
    if (select g.begun <= now() - p_age_ms * interval '1 ms' from moldau.generations g) then
        perform pg_advisory_xact_lock(7237089354392);
        update moldau.generations set current = current + 1, begun = now()
            where begun <= now() - p_age_ms * interval '1 ms';
    end if;
end $$;

-- Notes that the objects of dead keys are deleted.
create function moldau.forget_keys(p_keys uuid[]) returns void language plpgsql as $$
begin
    insert into moldau.spent_keys
        select moldau.generation(o.key), o.key from moldau.objects o
        where o.key = any (p_keys) and o.live = 0 order by 1, 2 on conflict do nothing;
    update moldau.objects o set deleted = true where o.key = any (p_keys) and o.live = 0;
end $$;

-- Removes rows of expired keys whose objects are deleted; whether there was any work.
create function moldau.remove_keys(p_keys integer) returns boolean language plpgsql as $$
begin
    with gone as (
        delete from moldau.spent_keys s using (
            select k.generation, k.key from moldau.spent_keys k
                where k.generation < (select g.current - 1 from moldau.generations g)
                order by k.generation, k.key limit p_keys for update skip locked) d
        where s.generation = d.generation and s.key = d.key
        returning s.key)
    delete from moldau.objects o using gone where o.key = gone.key;
    return found;
end $$;
