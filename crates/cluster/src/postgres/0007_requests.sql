-- Requests that brokers leave to the owner of the frames, in the order of their places.
create table moldau.requests (
    place bigint generated always as identity primary key,
    id uuid not null unique,
    request bytea not null,
    asked_at timestamptz not null default clock_timestamp(),
    -- Of the owner that took it.
    epoch bigint,
    answer bytea,
    -- Behind the frames that the answer may tell of.
    next_sequence bigint
);

-- Where the objects of the cluster are. A broker that looked for them elsewhere would lose records.
create table moldau.store (
    is_only boolean primary key default true check (is_only),
    bucket text not null,
    prefix text not null
);
