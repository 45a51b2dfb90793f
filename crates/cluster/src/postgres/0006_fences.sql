-- Producers of which no transaction begins with an epoch below this one.
create table moldau.fences (
    producer_id bigint primary key,
    epoch smallint not null
);
create index open_transactions_producer
    on moldau.open_transactions (producer_id, topic, partition);

-- A fence waits for the commits that hold its bucket, so it sees what they opened; later ones see
-- the fence. Few buckets bound the locks of a commit.
create function moldau.producer_bucket(p_producer bigint) returns integer language sql immutable as $$
    select (p_producer & 63)::integer
$$;

-- Holds the buckets of all producers of a commit that are in a transaction. The order prevents
-- deadlocks.
create function moldau.hold_producers(p_producers bigint[], p_parts smallint[]) returns void
language plpgsql as $$
declare
    bucket integer;
begin
    for bucket in
        select distinct moldau.producer_bucket(u.producer)
            from unnest(p_producers, p_parts) as u (producer, part) where u.part = 1 order by 1
    loop
        perform pg_advisory_xact_lock_shared(723708935, bucket);
    end loop;
end $$;

create function moldau.is_fenced(p_producer bigint, p_epoch smallint) returns boolean
language sql volatile as $$
    select exists (select from moldau.fences f
        where f.producer_id = p_producer and f.epoch > p_epoch)
$$;

-- Raises the epoch. Returns the logs in which the producer has a transaction open.
create function moldau.fence(p_producer bigint, p_epoch smallint)
returns table (topic uuid, partition integer) language plpgsql as $$
begin
    perform pg_advisory_xact_lock(723708935, moldau.producer_bucket(p_producer));
    insert into moldau.fences as f values (p_producer, p_epoch)
        on conflict (producer_id) do update set epoch = excluded.epoch
        where f.epoch < excluded.epoch;
    return query select o.topic, o.partition from moldau.open_transactions o
        join moldau.topics t on t.id = o.topic and t.name is not null
        where o.producer_id = p_producer order by 1, 2;
end $$;

-- A batch that opens a transaction must not be fenced.
do $migration$
declare
    before text := pg_get_functiondef('moldau.commit(uuid, uuid[], integer[], integer[], bigint[],
        integer[], integer[], bigint[], bigint[], smallint[], integer[], integer[], smallint[],
        bigint[])'::regprocedure);
    held text := replace(before, 'perform moldau.lock_logs(p_topics, p_partitions);',
        'perform moldau.lock_logs(p_topics, p_partitions);
    perform moldau.hold_producers(p_producers, p_parts);');
    checked text := replace(held, 'if verdict = 0 and b.part = 0 and opened is not null then',
        'if verdict = 0 and b.part = 1 and opened is null
                and moldau.is_fenced(b.producer, b.epoch)
            then
                verdict := 47;
            end if;
            if verdict = 0 and b.part = 0 and opened is not null then');
begin
    if held = before or checked = held then
        raise exception 'the function moldau.commit is not that of version 3';
    end if;
    execute checked;
end $migration$;
