-- counted(recoveries): how many messages have a count of lost workers. It comes before the first message is popped, and
-- runs what vet will run: a user who may not would else lose what was popped, as scripts do not roll back. O(1).
local function counted(recoveries)
  local known = redis.call('HLEN', recoveries)
  if known > 0 then
    redis.call('HMGET', recoveries, '-')
  end
  return known
end

-- vet(ready, recoveries, known, bodies, count, limit, alone): looks up how many workers were lost with bodies just popped
-- from ready, where any messages are known to have a count (B21). One that has lost limit - 1 of them is in its last
-- chance: at most alone of those are kept, and the others go to the tail of ready, so that a process that dies then takes
-- no other message of that kind with it. One that has lost limit workers is kept in any case: the caller dead-letters it
-- and does not run it. Returns the bodies kept, their number, their counts, and how many went back. O(bytes of the
-- bodies), nothing while no message has a count.
local function vet(ready, recoveries, known, bodies, count, limit, alone)
  if known == 0 or count == 0 then
    return bodies, count, {}, 0
  end
  local fields = {}
  for i = 1, count do
    fields[i] = field(bodies[i])
  end
  local all, kept, workers, back = counts(recoveries, fields), {}, {}, {}
  for i = 1, count do
    if all[i] == limit - 1 and alone < 1 then
      back[#back + 1] = bodies[i]
    else
      if all[i] == limit - 1 then
        alone = alone - 1
      end
      kept[#kept + 1] = bodies[i]
      workers[#kept] = all[i]
    end
  end
  variadic('RPUSH', ready, back)
  return kept, #kept, workers, #back
end

-- tell(reply, workers, known, back): appends to the reply of a reserve what vet found: a note 'position workers' for each
-- message that has lost some, the number of notes, how many messages have a count at all, and how many went back.
local function tell(reply, workers, known, back)
  local notes = 0
  for i = 1, #workers do
    if workers[i] > 0 then
      notes = notes + 1
      reply[#reply + 1] = i .. ' ' .. workers[i]
    end
  end
  reply[#reply + 1] = notes
  reply[#reply + 1] = known
  reply[#reply + 1] = back
end
