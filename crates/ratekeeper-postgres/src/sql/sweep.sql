-- Deletes up to `most` expired rows and returns how many. Rows that somebody is about to renew are left out.

CREATE OR REPLACE FUNCTION @schema@.sweep_v1(most bigint) RETURNS bigint
LANGUAGE plpgsql AS $sweep$
DECLARE
  swept bigint;
BEGIN
  -- The statement's time rather than the clock's, which could not be looked up in the index. It is no later.
  DELETE FROM @schema@.states_v1 s
    WHERE s.key = ANY (ARRAY(
      SELECT e.key FROM @schema@.states_v1 e WHERE e.expires <= statement_timestamp()
        ORDER BY e.expires LIMIT most FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS swept = ROW_COUNT;
  RETURN swept;
END $sweep$;
