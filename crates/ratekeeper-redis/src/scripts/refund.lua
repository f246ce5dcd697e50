-- Giving tokens back to a bucket; for the refund scripts, after lattice.lua.

-- The instant `span` before another, both as halves, but not before the epoch.
local function minus(high, low, span_high, span_low)
  high, low = high - span_high, low - span_low
  if low < 0 then
    high, low = high - 1, low + 2^32
  end
  if high < 0 then
    return 0, 0
  end
  return high, low
end

local function before(high, low, other_high, other_low)
  return high < other_high or (high == other_high and low < other_low)
end

-- The TAT after a refund, from the TAT before and from 80 bytes of ARGV[2], big endian, I4I4 = u64, d = double:
--   d n, d p, d short            the limit, see lattice.lua; n = 0 for one that does not count, and then all is 0
--   d full, d full_rest          quotient and remainder of burst·p / n
--   I4I4 after, I4I4 run_at      the receipt's
--   I4I4 credit                  floor(cost·p / n)
--   I4I4 cancelled               the same; or ceil(charged·p / n) - ceil((charged - cost)·p / n) if short = 0
--   d credit_rest                cost·p mod n; 0 if short = 0
-- Credits are cut to 2^64 - 1. cost <= charged; if it is 0, so are the credits.
local function refunded(high, low, position)
  local n, p, short, full, full_rest, after_high, after_low, run_high, run_low, credit_high, credit_low, cancelled_high,
    cancelled_low, credit_rest = read('>dddddI4I4I4I4I4I4I4I4d', ARGV[2], position)
  if credit_high + credit_low + cancelled_high + cancelled_low == 0 then
    return high, low
  end
  -- The lattice point at or below the TAT, relative to it, and its fraction.
  local back, fraction = 0, 0
  if short > 0 then
    back, fraction = snap(high, low, 0, n, p, short)
  end
  -- That point less a credit of floor((cost·p + fraction) / n).
  local function credited(span_high, span_low)
    local new_high, new_low = minus(high, low, span_high, span_low)
    return minus(new_high, new_low, 0, credit_rest + fraction >= n and 1 - back or -back)
  end

  local is_last = high == after_high and low == after_low
  if before(now_high, now_low, run_high, run_low) then
    if is_last then
      -- A reservation that nobody stands behind: the exact state before it.
      return credited(cancelled_high, cancelled_low)
    end
    return high, low
  end
  local debt = (high - now_high) * 2^32 + (low - now_low)
  if debt <= 0 or not before(now_high, now_low, after_high, after_low) then
    return high, low
  end
  if not is_last then
    -- Whoever stands in line behind the charge has an instant already, and the tokens would be used beside it as well. A debt
    -- above 2^53 stays above what an empty bucket owes, however it is rounded.
    if full_rest + fraction >= n then
      full = full + 1
    end
    if debt + back > full then
      return high, low
    end
  end
  -- Back by the cost, but by no more than what has not refilled meanwhile: after - now. Two nanoseconds cover the
  -- rounding of two unrelated lattice points.
  local new_high, new_low = credited(credit_high, credit_low)
  local least_high, least_low = minus(high, low, minus(after_high, after_low, now_high, now_low))
  if short > 0 and not is_last then
    least_high, least_low = plus(least_high, least_low, 2)
  end
  if before(new_high, new_low, least_high, least_low) then
    new_high, new_low = least_high, least_low
  end
  if before(high, low, new_high, new_low) then
    return high, low
  end
  return new_high, new_low
end
