-- Which instants a token bucket's TAT may take; for the bucket scripts, after muldiv.lua.
--
-- A limit of n tokens per p ns, in lowest terms. `short` is n·floor(p/n) if a token takes more than 1 ns but no whole
-- number of them, else 0: then every instant is on the lattice. An instant x on the lattice carries a rounding
-- `fraction`, in 0..n; its true value is x - fraction/n. `reach` is how far a legal TAT lies ahead at most.
--
-- What may be sent: reach <= 9.0e15 where n = 1; else n, p, reach and ceil(n·reach / p) all <= 4.5e15, which is 2^52
-- less 2^41.7.

-- The last lattice point not after the instant `span` after (high, low): its distance from there, and its fraction.
-- `short` is above 0.
local function snap(high, low, span, n, p, short)
  -- fmod is exact for all doubles, `%` for integers below 2^53 as the sum is: 9.0e15 + 2^32 at most.
  local _, rest = muldiv((math.fmod(high * 2^32, p) + low + span) % p, n, p)
  if rest >= short then
    return span - 1, rest - short
  end
  return span, rest % n
end
