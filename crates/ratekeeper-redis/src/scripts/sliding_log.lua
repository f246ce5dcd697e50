-- Exact sliding log: the last admitted tokens in a sorted set, oldest first. After prologue.lua.
--
-- Scores are whole microseconds, as nanoseconds would be rounded; so are the clock and the window here. Members are
-- numbers in sequence, 8 bytes (a positive double, whose bytes sort like its value): the last one by rank has the
-- largest, so the next is free, however many tokens share an instant.
--
-- ARGV[1]  see prologue.lua
-- ARGV[2]  big endian; the window is at most 4.5e15 us, the limit 10000, the instant below 2^53 us
--   B op, d grace_ms, d limit, d window_us, then by op
--   0 take, as much as fits:  d cost, d least, both cut to 2^53; least = cost: all or nothing, least = 0: never
--                             refused; cost 0 looks
--   1 refund:                 d cost, of what was charged; d mark_us, the receipt's (-1 if it is no whole number)
-- Reply    {now, granted, remaining, reset_us, retry_us, mark_us, written}, all but `now` integers:
--   remaining   what is left after the decision, at least 0
--   reset_us    until the newest token has left the window; 0 if none is in it
--   retry_us    until `least` passes, if it was refused and the limit can hold it; else 0
--   mark_us     the instant under which tokens were recorded; 0 if none were
--   written     1 or 0

local op, grace_ms, limit, window, cost, least = read('>Bddddd', ARGV[2])
local key = KEYS[1]
-- floor(ns / 1000), from 2^32 = 4294967·1000 + 296
local at = now_high * 4294967 + math.floor((now_high * 296 + now_low) / 1000)

local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
local member, newest = last[1], tonumber(last[2] or 0)
if member and (#member ~= 8 or newest < 0 or newest >= 2^53 or newest % 1 ~= 0) then
  return redis.error_reply('BADSTATE not a sliding log')
end

-- When it is decided: now, or the newest instant if that is later. Whatever lies ahead is honest, and nothing is cut: an
-- instant says nothing about how far ahead it may lie.
local effective = math.max(at, newest)
-- Tokens in the window that ends at `instant`. As text in full: concatenation would keep 14 digits.
local function inside_at(instant)
  return call('ZCOUNT', key, string.format('(%.0f', instant - window), '+inf')
end
local inside = inside_at(effective)

local granted, removed, retry, mark = 0, 0, 0, 0
if op == 0 then
  granted = math.max(0, math.min(cost, limit - inside))
  if granted < least then
    granted = 0
    if least <= limit then
      -- The last token that `least` more would push out; all but the newest limit - least.
      local rank = least - limit - 1
      local blocking = tonumber(call('ZRANGE', key, rank, rank, 'WITHSCORES')[2])
      retry = blocking - at + window
    end
  end
elseif least > effective - window then
  local instant = string.format('%.0f', least)
  removed = math.min(cost, call('ZCOUNT', key, instant, instant))
  if removed > 0 then
    local first = call('ZCOUNT', key, '-inf', '(' .. instant)
    call('ZREMRANGEBYRANK', key, first, first + removed - 1)
    last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
    member, newest = last[1], tonumber(last[2] or 0)
    -- The newest instant may have been the one given back.
    inside = inside_at(math.max(at, newest))
  end
end

if granted > 0 then
  -- A log that is not full asks for memory before it changes anything; a full one exchanges tokens.
  local pushed_out = call('ZCARD', key) + granted - limit
  if pushed_out > 0 then
    call('ZREMRANGEBYRANK', key, 0, pushed_out - 1)
  end
  mark, newest, inside = effective, effective, inside + granted
  local instant, sequence = string.format('%.0f', mark), member and read('>d', member) or 0
  -- In portions that fit Lua's stack.
  for first = 1, granted, 1000 do
    local tokens = {}
    for i = first, math.min(first + 999, granted) do
      tokens[#tokens + 1] = instant
      tokens[#tokens + 1] = pack('>d', sequence + i)
    end
    call('ZADD', key, unpack(tokens))
  end
end
local reset = 0
if member or granted > 0 then
  reset = math.max(0, newest - at + window)
end
local written = granted > 0 or removed > 0
if written then
  call('PEXPIRE', key, math.ceil(reset / 1000) + grace_ms)
end
return {now, granted, math.max(0, limit - inside), reset, retry, mark, written and 1 or 0}
