-- Takes from 1 to 4 token buckets, from all of them or from none; in one value. After prologue.lua, muldiv.lua and
-- lattice.lua.
--
-- State    0x14, a TAT for each bucket: 1 + 8·count bytes
-- ARGV[1]  see prologue.lua
-- ARGV[2]  big endian:
--   B op, d grace_ms, then 72 bytes for each bucket:
--   d reach, d n, d p, d short, and 5 d by op as in token_bucket.lua (op 1: cost and least are the same in each)
-- Reply    {now, old state or '', new state or '' if none was written}

local args = ARGV[2]
local op, grace_ms = read('>Bd', args)
local count = (#args - 9) / 72
local old = call('GET', KEYS[1])
local tats = {0, 0, 0, 0, 0, 0, 0, 0}
if old then
  if #old ~= 1 + 8 * count or old:byte() ~= 0x14 then
    return redis.error_reply('BADSTATE not that many token buckets')
  end
  tats = {read('>I4I4I4I4I4I4I4I4', old .. ('\0'):rep(32 - 8 * count), 2)}
end

-- One bucket after the other, each as token_bucket.lua does it. A TAT too far ahead is cut, and that is stored even
-- if this bucket or another refuses. `news` are the TATs if all let the request pass, relative to now.
local debts, fractions, news = {}, {}, {}
local passes, repairs, grant, keep = true, false, math.huge, 0
for i = 1, count do
  local reach, n, p, short, a, b, c, d, e = read('>ddddddddd', args, 72 * i - 62)
  local debt, fraction = (tats[2 * i - 1] - now_high) * 2^32 + (tats[2 * i] - now_low), 0
  if debt > reach then
    repairs, debt = true, reach
    tats[2 * i - 1], tats[2 * i] = plus(now_high, now_low, reach)
  elseif debt < 0 then
    debt = 0
  end
  if short > 0 then
    debt, fraction = snap(now_high, now_low, debt, n, p, short)
  end
  if op == 1 then
    grant = math.min(grant, a, b)
    if debt > d then
      local owed, rest = muldiv(n, debt - d, p)
      if rest > fraction then
        owed = owed + 1
      end
      grant = math.min(grant, a - owed)
    end
    passes = grant >= c
    fractions[i] = fraction
  else
    local new = debt + a
    if b > fraction then
      new = new + 1
    end
    if op == 0 then
      if d + fraction >= n then
        c = c + 1
      end
      passes = passes and debt - c <= e
    elseif new >= reach then
      new = reach
      debt = short > 0 and snap(now_high, now_low, reach, n, p, short) or reach
    else
      debt = new
    end
    news[i] = new
  end
  debts[i] = debt
  keep = math.max(keep, debt)
end

if passes then
  for i = 1, count do
    if op == 1 then
      local n, p = read('>dd', args, 72 * i - 54)
      local span, rest = muldiv(grant, p, n)
      if rest > fractions[i] then
        span = span + 1
      end
      news[i] = debts[i] + span
    end
    tats[2 * i - 1], tats[2 * i] = plus(now_high, now_low, news[i])
    if op < 2 then
      keep = math.max(keep, news[i])
    end
  end
elseif not repairs then
  return {now, old or '', ''}
end
local state = pack('>BI4I4I4I4I4I4I4I4', 0x14, unpack(tats, 1, 8)):sub(1, 1 + 8 * count)
if op == 2 and state == old then
  return {now, old, ''}
end
call('SET', KEYS[1], state, 'PX', math.ceil(keep / 1000000) + grace_ms)
return {now, old or '', state}
