-- State  0x21, TAT, reach (how far ahead the last taker could book): 17 bytes
--        0x31, TAT, the limit with its version (u16, tokens, period, burst, longest wait): 43 bytes
--        0x11, TAT, as earlier versions wrote it: 9 bytes
-- args   op, cost, accepted, run_at; n, p, burst, reach, extra, charged: see bucket.sql; and if the limit has a version, that,
--        tokens, period ns, longest wait ns
DECLARE
  op numeric := args[1];
  cost numeric := args[2];
  accepted numeric := args[3];
  run_at numeric := args[4];
  n numeric := args[5];
  p numeric := args[6];
  burst numeric := args[7];
  reach numeric := args[8];
  extra numeric := args[9];
  charged numeric := args[10];
  version numeric := args[11];
  in_full bytea;
  tag integer;
  size integer;
  tat numeric := 0;
  held_reach numeric;
  ahead boolean := false;
  granted numeric;
  writes boolean;
BEGIN
  IF version IS NOT NULL THEN
    in_full := substring(int4send(version::integer) FROM 3) || @schema@.bytes_v1(args[12]) || @schema@.bytes_v1(args[13])
      || @schema@.bytes_v1(burst) || @schema@.bytes_v1(args[14]);
  END IF;
  IF old IS NOT NULL THEN
    size := octet_length(old);
    tag := CASE WHEN size > 0 THEN get_byte(old, 0) END;
    IF tag = 33 AND size = 17 AND version IS NULL THEN
      tat := @schema@.word_v1(old, 2);
      held_reach := @schema@.word_v1(old, 10);
    ELSIF tag = 17 AND size = 9 AND version IS NULL THEN
      tat := @schema@.word_v1(old, 2); -- without a reach, and so without a proof of anything
    ELSIF tag = 49 AND size = 43 AND substring(old FROM 10) = in_full THEN
      tat := @schema@.word_v1(old, 2);
      held_reach := reach;
    ELSIF tag = 49 AND size = 43 AND substring(old FROM 10 FOR 2) = substring(in_full FOR 2)
      AND @schema@.word_v1(old, 12) > 0
      AND @schema@.word_v1(old, 12) * args[13] = @schema@.word_v1(old, 20) * args[12]
      AND @schema@.word_v1(old, 28) = burst AND @schema@.word_v1(old, 36) = args[14]
    THEN
      tat := @schema@.word_v1(old, 2); -- the same limit, in other words
      held_reach := reach;
    ELSIF (tag = 33 AND size = 17) OR (tag = 17 AND size = 9) OR (tag = 49 AND size = 43) THEN
      new := ''; -- of another version, or of none
    ELSIF (tag IN (19, 21) AND size = 17) OR (tag = 20 AND size IN (9, 17, 25, 33)) OR (tag = 23 AND size BETWEEN 17 AND 74) THEN
      NULL; -- another kind of limit's, from a time when that was no part of the key: as if there were none
    ELSE
      RAISE EXCEPTION 'not a token bucket' USING ERRCODE = 'RK001';
    END IF;
  END IF;
  IF new IS NULL THEN
    -- No taker moves a TAT further ahead than its reach: the clock was stepped back.
    IF tat > now_ns + held_reach THEN
      tat := now_ns + held_reach;
      ahead := true;
    END IF;
@bucket@
    IF writes OR ahead THEN
      new := CASE
        WHEN version IS NOT NULL THEN '\x31'::bytea || @schema@.bytes_v1(tat) || in_full
        -- What is given back leaves the reach as it is.
        WHEN writes AND op < 2 THEN '\x21'::bytea || @schema@.bytes_v1(tat) || @schema@.bytes_v1(reach)
        WHEN held_reach IS NULL THEN '\x11'::bytea || @schema@.bytes_v1(tat)
        ELSE '\x21'::bytea || @schema@.bytes_v1(tat) || @schema@.bytes_v1(held_reach)
      END;
      keep_ns := greatest(tat - now_ns, 0);
    END IF;
  END IF;
END;
