-- Takes from a token bucket. After prologue.lua, muldiv.lua and lattice.lua.
--
-- State    0x11, TAT: 9 bytes
-- ARGV[1]  see prologue.lua
-- ARGV[2]  big endian, B = u8, d = double:
--   B op, d grace_ms, d reach, d n, d p, d short, then by op
--   0 take, all or nothing, perhaps later:
--       d charge, d charge_rest  quotient and remainder of cost·p / n
--       d credit, d credit_rest  the same of (burst - cost)·p / n; credit is -inf if cost > burst
--       d wait                   the request's, cut to the limit's max_wait
--   1 up to:   d burst, d cost, d least, d wait, d 0; 1 <= least <= cost, both cut to 2^53
--   2 charge, never refused:  d charge, d charge_rest; if charge >= 2^53, these are 2^53 and 0; d 0, d 0, d 0
-- Reply    {now, old state or '', new state or '' if none was written}

local op, grace_ms, reach, n, p, short, a, b, c, d, e = read('>Bdddddddddd', ARGV[2])
local old = call('GET', KEYS[1])
local high, low = 0, 0
if old then
  if #old ~= 9 or old:byte() ~= 0x11 then
    return redis.error_reply('BADSTATE not a token bucket')
  end
  high, low = read('>I4I4', old, 2)
end

-- Where a charge starts from, relative to now: the TAT, cut to what is legal, or now if the bucket is full.
local debt, fraction = (high - now_high) * 2^32 + (low - now_low), 0
local excess = debt > reach
if excess then
  debt = reach
elseif debt < 0 then
  debt = 0
end
if short > 0 then
  debt, fraction = snap(now_high, now_low, debt, n, p, short)
end

local new
if op == 0 then
  -- Room first, on the state before the charge: now + wait >= debt - floor(((burst - cost)·p + fraction) / n).
  if d + fraction >= n then
    c = c + 1
  end
  if debt - c <= e then
    -- Then the charge: ceil((cost·p - fraction) / n).
    new = debt + a
    if b > fraction then
      new = new + 1
    end
  end
elseif op == 1 then
  local grant = a
  if debt > d then
    -- burst - ceil((n·(debt - wait) - fraction) / p)
    local owed, rest = muldiv(n, debt - d, p)
    grant = a - owed
    if rest > fraction then
      grant = grant - 1
    end
  end
  grant = math.min(grant, b)
  if grant >= c then
    local span, rest = muldiv(grant, p, n)
    new = debt + span
    if rest > fraction then
      new = new + 1
    end
  end
else
  new = debt + a
  if b > fraction then
    new = new + 1
  end
  new = math.min(new, reach)
end

if not new then
  if not excess then
    return {now, old or '', ''}
  end
  new = reach -- a repair is stored even if the request is refused
end
local state = pack('>BI4I4', 0x11, plus(now_high, now_low, new))
if op == 2 and state == old then
  return {now, old, ''}
end
call('SET', KEYS[1], state, 'PX', math.ceil(new / 1000000) + grace_ms)
return {now, old or '', state}
