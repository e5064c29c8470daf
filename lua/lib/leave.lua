-- leave(processing, held, first): takes one copy of each held value out of processing. held comes from the
-- gate; ARGV[first] is the member of position 1, "<32 hex>:<value>". Returns by position whether the value
-- was there: where it was not, somebody removed it and nothing may be pushed anywhere (L4).
local function leave(processing, held, first)
  local values, want, total = {}, {}, 0
  for i = 1, #held do
    if held[i] then
      local value = string.sub(ARGV[first + i - 1], 34)
      values[i] = value
      want[value] = (want[value] or 0) + 1
      total = total + 1
    end
  end
  remove(processing, want, total)
  local left = {}
  for i = 1, #held do
    local value = values[i]
    if not value then
      left[i] = false
    elseif want[value] > 0 then
      want[value] = want[value] - 1
      left[i] = false
    else
      left[i] = true
    end
  end
  return left, values
end
