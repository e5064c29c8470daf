-- gate(leases, members, first, last): the ack gate (L4, Z4). Removes members[first..last] from the leases and
-- returns by position from 1 the score each had, false for what is late: its lease ran out and somebody else may
-- own the message by now, so nothing of it may be touched. Of equal members the first passes and the others are
-- late. ZREM is the first write of the scripts that use it, and its count tells whether members repeat, so that
-- looking for repetitions costs nothing where there are none. O(n * log N).
local function gate(leases, members, first, last)
  local held, live = scores(leases, members, first, last), {}
  for i = 1, #held do
    if held[i] then
      live[#live + 1] = members[first + i - 1]
    end
  end
  if variadic('ZREM', leases, live) < #live then
    local seen = {}
    for i = 1, #held do
      local member = members[first + i - 1]
      held[i] = not seen[member] and held[i]
      seen[member] = true
    end
  end
  return held
end

-- gated(leases, members, first, last): the members[first..last] that passed the gate, by position; false for the others.
local function gated(leases, members, first, last)
  local held = gate(leases, members, first, last)
  for i = 1, #held do
    held[i] = held[i] and members[first + i - 1]
  end
  return held
end
