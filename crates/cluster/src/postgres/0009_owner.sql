-- What the object `moldau-cluster` says whose the objects are; null for the id of the cluster. A
-- database that takes over from its older copy gets another.
alter table moldau.store add column owner uuid;
