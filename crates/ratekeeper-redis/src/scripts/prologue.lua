-- The beginning of every script: the instant of the decision, and arithmetic on instants.
--
-- Instants are nanoseconds since the Unix epoch, u64. Lua knows doubles only, exact for integers up to 2^53, so an
-- instant is kept as two 32-bit halves, high and low. Spans, the differences of instants, are plain numbers;
-- limits whose spans could reach 2^53 ns (104 days) are never sent here, nor are instants in the last 2^54 ns of u64.
-- Functions use no local of the script if they can: each one that they do is paid for in every call.
--
-- ARGV[1]  '' for the server's clock, or the instant to use instead: 8 bytes, big endian

local call, pack, read = redis.call, struct.pack, struct.unpack

local now, now_high, now_low = ARGV[1], 0, 0
if now == '' then
  -- s·10^9 = (s·5^9)·2^9, and s·5^9 stays below 2^53 until the year 2116.
  local time = call('TIME')
  local product = time[1] * 1953125
  local part = product % 2^23
  now_high, now_low = (product - part) / 2^23, part * 512 + time[2] * 1000
  if now_low >= 2^32 then
    now_high, now_low = now_high + 1, now_low - 2^32
  end
  now = pack('>I4I4', now_high, now_low)
else
  now_high, now_low = read('>I4I4', now)
end

-- The instant `span` after another, or before it if negative; |span| + 2^32 <= 2^53. A remainder by a power of two
-- is exact, and never negative.
local function plus(high, low, span)
  local sum = low + span
  low = sum % 2^32
  return high + (sum - low) / 2^32, low
end

-- How long a key is kept: PX = ceil(span / 10^6) + grace_ms, with grace_ms >= 1. The ratio is below 2^34, where doubles
-- lie less than 2·10^-6 apart, so not even one ns above a whole ms is rounded away.
