-- Big-endian words of 64 bits, as numbers and back. Planned into the expressions that call them.

CREATE OR REPLACE FUNCTION @schema@.word_v1(bytes bytea, at integer) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT mod(
    ('x' || encode(substring(bytes FROM at FOR 8), 'hex'))::bit(64)::bigint + 18446744073709551616,
    18446744073709551616)
$$;

CREATE OR REPLACE FUNCTION @schema@.bytes_v1(word numeric) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT int8send((mod(word + 9223372036854775808, 18446744073709551616) - 9223372036854775808)::bigint)
$$;
