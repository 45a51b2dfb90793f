-- Asked again for the same topic it does nothing. Raises MD005 if the name is another topic's.
create or replace function moldau.create_topic(p_id uuid, p_name text, p_partitions integer) returns void
language plpgsql as $$
begin
    insert into moldau.topics values (p_id, p_name, p_partitions) on conflict do nothing;
    if not found and not exists (
        select from moldau.topics t where t.id = p_id and t.name = p_name)
    then
        raise exception 'topic % exists', p_name using errcode = 'MD005';
    end if;
end $$;

-- Never takes partitions away. Commits do not wait for it. Raises MD002 if there is no such topic.
create function moldau.grow_topic(p_id uuid, p_partitions integer) returns integer
language plpgsql as $$
declare
    grown integer;
begin
    update moldau.topics t set partitions = greatest(t.partitions, p_partitions)
        where t.id = p_id and t.name is not null returning t.partitions into grown;
    if not found then
        raise exception 'no topic %', p_id using errcode = 'MD002';
    end if;
    return grown;
end $$;
