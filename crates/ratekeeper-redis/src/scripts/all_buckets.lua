-- Takes from 1 to 4 token buckets, from all of them or from none; in one value. After prologue.lua, muldiv.lua and
-- lattice.lua.
--
-- Value    0x24, then u64 TAT, u64 reach for each bucket: 1 + 16·count bytes
-- ARGV[1]  see prologue.lua
-- ARGV[2]  big endian:
--   B op, d grace_ms, then 80 bytes for each bucket:
--   d reach, d n, d p, d short, and 5 d by op as in token_bucket.lua (op 1: cost and least are the same in each);
--   u64 reach. n = 0: a bucket that does not count, and whose TAT never moves. It lets pass what costs at most d a (op 0: all
--   if a = 1, nothing if a = 0)
-- Reply    {now, old value or '', new value or '' if none was written}

local args = ARGV[2]
local op, grace_ms = read('>Bd', args)
local count = (#args - 9) / 80
local old = call('GET', KEYS[1])
if old and (#old ~= 1 + 16 * count or old:byte() ~= 0x24) then
  return redis.error_reply('BADSTATE not that many token buckets')
end

-- One bucket after the other, each as token_bucket.lua does it. `news` are the TATs to move to if all let the request pass,
-- relative to now; nil if one stays.
local highs, lows, starts, fractions, news = {}, {}, {}, {}, {}
local passes, repaired, grant = true, false, math.huge
for i = 1, count do
  local reach, n, p, short, a, b, c, d, e = read('>ddddddddd', args, 80 * i - 70)
  local high, low = 0, 0
  if old then
    local reach_high, reach_low
    high, low, reach_high, reach_low = read('>I4I4I4I4', old, 16 * i - 14)
    reach_high, reach_low = plus(now_high + reach_high, now_low, reach_low)
    if high > reach_high or (high == reach_high and low > reach_low) then
      high, low, repaired = reach_high, reach_low, true
    end
  end
  highs[i], lows[i] = high, low
  local debt = (high - now_high) * 2^32 + (low - now_low)
  if n == 0 then
    if op == 0 then
      passes = passes and a == 1
    elseif op == 1 then
      grant = math.min(grant, a)
      passes = passes and grant >= c
    end
  elseif debt > reach then
    passes = passes and op == 2
  else
    local start, fraction = math.max(0, debt), 0
    if short > 0 then
      start, fraction = snap(now_high, now_low, start, n, p, short)
    end
    starts[i], fractions[i] = start, fraction
    if op == 0 then
      if d + fraction >= n then
        c = c + 1
      end
      passes = passes and start - c <= e
      news[i] = start + a
      if b > fraction then
        news[i] = news[i] + 1
      end
    elseif op == 1 then
      grant = math.min(grant, a, b)
      if start > d then
        local owed, rest = muldiv(n, start - d, p)
        if rest > fraction then
          owed = owed + 1
        end
        grant = math.min(grant, a - owed)
      end
      passes = passes and grant >= c
    else
      -- A charge goes to each as far as that has room.
      local fits, rest = muldiv(n, reach - start, p)
      if rest + fraction >= p then
        fits = fits + 1
      end
      fits = math.min(fits, a)
      if fits > 0 then
        local span
        span, rest = muldiv(fits, p, n)
        news[i] = start + span
        if rest > fraction then
          news[i] = news[i] + 1
        end
      end
    end
  end
end

if not passes then
  news = {}
elseif op == 1 then
  -- What all of them can give.
  for i, start in pairs(starts) do
    local n, p = read('>dd', args, 80 * i - 62)
    local span, rest = muldiv(grant, p, n)
    news[i] = start + span
    if rest > fractions[i] then
      news[i] = news[i] + 1
    end
  end
end
if not repaired and next(news) == nil then
  return {now, old or '', ''}
end
local parts, keep = {'\036'}, 0
for i = 1, count do
  local high, low = highs[i], lows[i]
  local reach = old and old:sub(16 * i - 6, 16 * i + 1)
  if news[i] then
    high, low = plus(now_high, now_low, news[i])
  end
  if news[i] or not old then
    reach = args:sub(80 * i + 2, 80 * i + 9)
  end
  keep = math.max(keep, (high - now_high) * 2^32 + (low - now_low))
  parts[i + 1] = pack('>I4I4', high, low) .. reach
end
local value = table.concat(parts)
call('SET', KEYS[1], value, 'PX', math.ceil(keep / 1000000) + grace_ms)
return {now, old or '', value}
