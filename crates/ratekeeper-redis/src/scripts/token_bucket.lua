-- Takes from a token bucket. After prologue.lua, muldiv.lua, lattice.lua and bucket_value.lua.
--
-- ARGV[1]  see prologue.lua
-- ARGV[2]  big endian, B = u8, d = double:
--   B op, d grace_ms, d reach, d n, d p, d short, then by op
--   0 take, all or nothing, perhaps later:
--       d charge, d charge_rest  quotient and remainder of cost·p / n
--       d credit, d credit_rest  the same of (burst - cost)·p / n; credit is -inf if cost > burst
--       d wait                   the request's, cut to the limit's max_wait
--   1 up to:   d burst, d cost, d least, d wait, d 0; 1 <= least <= cost, both cut to 2^53
--   2 charge, never refused, whole tokens as far as there is room:  d cost, cut to 2^53; d 0, d 0, d 0, d 0
--   then the record, see bucket_value.lua
-- Reply    {now, old value or '', new value or '' if none was written}; or {now, old value, 0}

local args = ARGV[2]
local op, grace_ms, reach, n, p, short, a, b, c, d, e = read('>Bdddddddddd', args)
local record = args:sub(82)
local old = call('GET', KEYS[1])
local high, low, repaired = 0, 0, false
if old then
  high, low, repaired = opened(old, record, reach)
  if not high then
    return repaired
  end
end

-- A TAT further ahead than this limit reaches is honest debt, of another limit, and leaves no room for whatever is asked;
-- it may also be further than 2^53 ns, which rounding does not bring below a reach of at most 9.0e15.
local debt = (high - now_high) * 2^32 + (low - now_low)
local new
if debt <= reach then
  -- Where a charge starts from, relative to now: the TAT, or now if the bucket is full.
  local start, fraction = math.max(0, debt), 0
  if short > 0 then
    start, fraction = snap(now_high, now_low, start, n, p, short)
  end
  if op == 0 then
    -- Room first, on the state before the charge: now + wait >= start - floor(((burst - cost)·p + fraction) / n).
    if d + fraction >= n then
      c = c + 1
    end
    if start - c <= e then
      -- Then the charge: ceil((cost·p - fraction) / n).
      new = start + a
      if b > fraction then
        new = new + 1
      end
    end
  else
    local grant, least
    if op == 1 then
      grant, least = a, c
      if start > d then
        -- burst - ceil((n·(start - wait) - fraction) / p)
        local owed, rest = muldiv(n, start - d, p)
        grant = a - owed
        if rest > fraction then
          grant = grant - 1
        end
      end
      grant = math.min(grant, b)
    else
      -- floor((n·room + fraction) / p)
      local rest
      grant, rest = muldiv(n, reach - start, p)
      if rest + fraction >= p then
        grant = grant + 1
      end
      grant, least = math.min(grant, a), 1
    end
    if grant >= least then
      local span, rest = muldiv(grant, p, n)
      new = start + span
      if rest > fraction then
        new = new + 1
      end
    end
  end
end

if new then
  high, low = plus(now_high, now_low, new)
  return store(old, #record == 8 and 0x21 or 0x31, high, low, record, math.ceil(new / 1000000) + grace_ms)
elseif repaired then
  -- The clock was set back, which is stored whatever the request comes to.
  return store(old, old:byte(), high, low, old:sub(10), math.ceil(debt / 1000000) + grace_ms)
end
return {now, old or '', ''}
