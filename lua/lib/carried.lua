-- carried(member): the value a deadline member "<32 hex>:<value>" carries (L2), nil for any other text.
local function carried(member)
  local _, stop = string.find(member, '^%x+:')
  if stop == 33 then
    return string.sub(member, 34)
  end
end
