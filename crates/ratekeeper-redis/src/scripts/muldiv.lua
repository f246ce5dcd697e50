-- floor(a·b/m) and the remainder. Needs a·b < 2^53; or a, b, m and the quotient < 2^52.
local function muldiv(a, b, m)
  local product = a * b
  if product < 2^53 then
    local rest = product % m -- exact for integers below 2^53
    return (product - rest) / m, rest
  end
  -- Two roundings, of 2^-53 each, put the quotient off by 1 at most. So the remainder, in -m..2m, is below 2^53, and
  -- it is found exactly from halves of 26 bits: each bracket is exact, and so is the sum of the first two, which
  -- nearly cancel and are multiples of 2^26.
  local quotient = math.floor(product / m)
  local a0, b0, m0, q0 = a % 2^26, b % 2^26, m % 2^26, quotient % 2^26
  local a1, b1, m1, q1 = (a - a0) / 2^26, (b - b0) / 2^26, (m - m0) / 2^26, (quotient - q0) / 2^26
  local rest = (a1 * b1 - q1 * m1) * 2^52 + ((a1 * b0 + a0 * b1) - (q1 * m0 + q0 * m1)) * 2^26 + (a0 * b0 - q0 * m0)
  if rest < 0 then
    return quotient - 1, rest + m
  elseif rest >= m then
    return quotient + 1, rest - m
  end
  return quotient, rest
end
