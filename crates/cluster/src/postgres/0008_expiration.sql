-- When the last batch of the producer was appended. No index has it, so that a commit changes a row
-- in place.
alter table moldau.producers add column appended_at timestamptz not null default now();

-- The greatest decision of the producer in the logs that forgot it: a marker that comes late ends
-- no later transaction there.
alter table moldau.fences add column decision bigint not null default -1;

-- A log that meets a producer again takes the decisions that logs have forgotten.
do $migration$
declare
    before text := pg_get_functiondef('moldau.commit(uuid, uuid[], integer[], integer[], bigint[],
        integer[], integer[], bigint[], bigint[], smallint[], integer[], integer[], smallint[],
        bigint[])'::regprocedure);
    stamped text := replace(before, 'last_timestamp = excluded.last_timestamp,',
        'last_timestamp = excluded.last_timestamp, appended_at = excluded.appended_at,');
    recalled text := replace(stamped, 'case when b.part >= 2 then b.decision else -1 end, base)',
        'greatest(case when b.part >= 2 then b.decision else -1 end,
                            case when not producer_known then (select f.decision
                                from moldau.fences f where f.producer_id = b.producer) end), base)');
begin
    if stamped = before or recalled = stamped then
        raise exception 'the function moldau.commit is not that of version 6';
    end if;
    execute recalled;
end $migration$;

-- Of so many producers of logs behind one, in order, forgets those whose last batch was appended
-- before this age, and that have no transaction open there. Gives the last one that it looked at,
-- and how many it forgot; no row if none is left.
create function moldau.expire_producers(
    p_topic uuid, p_partition integer, p_producer bigint, p_age_ms bigint, p_rows integer
) returns table (last_topic uuid, last_partition integer, last_producer bigint, forgotten bigint)
language plpgsql as $$
declare
    appended_before timestamptz := now() - p_age_ms * interval '1 ms';
    looked record;
    n integer := 0;
    topics uuid[] := '{}';
    partitions integer[] := '{}';
    producers bigint[] := '{}';
begin
    for looked in
        select p.topic, p.partition, p.producer_id, p.appended_at from moldau.producers p
            where (p.topic, p.partition, p.producer_id) > (p_topic, p_partition, p_producer)
            order by p.topic, p.partition, p.producer_id limit p_rows
    loop
        last_topic := looked.topic;
        last_partition := looked.partition;
        last_producer := looked.producer_id;
        if looked.appended_at <= appended_before then
            n := n + 1;
            topics[n] := looked.topic;
            partitions[n] := looked.partition;
            producers[n] := looked.producer_id;
        end if;
    end loop;
    if last_topic is null then
        return;
    end if;
    forgotten := 0;
    if n > 0 then
        -- Commits hold the same locks; what they have changed meanwhile is seen behind this.
        perform moldau.lock_logs(topics, partitions);
        with gone as (
            delete from moldau.producers p
                using unnest(topics, partitions, producers) u (topic, partition, producer)
                join moldau.topics t on t.id = u.topic and t.name is not null
                where p.topic = u.topic and p.partition = u.partition
                    and p.producer_id = u.producer and p.appended_at <= appended_before
                    and not exists (select from moldau.open_transactions o
                        where o.topic = p.topic and o.partition = p.partition
                            and o.producer_id = p.producer_id)
                returning p.producer_id, p.decision),
        kept as (
            insert into moldau.fences as f (producer_id, epoch, decision)
                select g.producer_id, 0, max(g.decision) from gone g
                    where g.decision >= 0 group by g.producer_id order by g.producer_id
                on conflict (producer_id) do update set decision = excluded.decision
                where f.decision < excluded.decision)
        select count(*) into forgotten from gone;
    end if;
    return next;
end $$;
