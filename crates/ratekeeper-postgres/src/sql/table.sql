-- One row for each key whose state differs from a fresh one. Keys and states are as in every other backend.
--
-- `expires` is rounded up to whole minutes: an update that does not change an indexed column stays on its page ("HOT"),
-- needs no new index entries and is cleaned up without a vacuum. The room that it needs is what `fillfactor` leaves.

SELECT pg_advisory_xact_lock(hashtextextended('ratekeeper @schema@', 0));

CREATE SCHEMA IF NOT EXISTS @schema@;

CREATE @unlogged@TABLE IF NOT EXISTS @schema@.states_v1 (
  key bytea PRIMARY KEY,
  state bytea NOT NULL,
  expires timestamptz NOT NULL
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX IF NOT EXISTS states_v1_expires ON @schema@.states_v1 (expires);
