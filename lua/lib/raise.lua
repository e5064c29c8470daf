-- locate(body): where the attempts of one JSON object stand (Z3). A walk over the structure that knows
-- strings and depth; no cjson, which would damage the body (B30, B31). Returns the first and last position
-- of the value of the last top-level "attempts" and its text; or, where there is none, the position of the
-- final brace, nil, and whether the object has members. Returns nothing for what is not one object. The
-- grammar of the values is not checked: the client decodes the body and undoes the edit of a bad one. O(n).
local function locate(body)
  local find, byte, sub = string.find, string.byte, string.sub
  local at = find(body, '[^ \t\r\n]')
  if not at or byte(body, at) ~= 123 then
    return
  end
  local depth, key_next, members = 0, false, false
  local first, text
  while true do
    at = find(body, '["{}%[%],]', at)
    if not at then
      return
    end
    local char = byte(body, at)
    if char == 34 then
      local stop = at + 1
      while true do
        stop = find(body, '["\\]', stop)
        if not stop then
          return
        end
        if byte(body, stop) == 34 then
          break
        end
        stop = stop + 2
      end
      if key_next then
        key_next, members = false, true
        local key = sub(body, at + 1, stop - 1)
        if find(key, '\\', 1, true) then
          key = string.gsub(key, '\\u00(%x%x)', function(hex)
            return string.char(tonumber(hex, 16))
          end)
        end
        if key == 'attempts' then
          local _, colon = find(body, '^[ \t\r\n]*:[ \t\r\n]*', stop + 1)
          if not colon then
            return
          end
          first, text = colon + 1, string.match(body, '^[^ \t\r\n,}]*', colon + 1)
        end
      end
      at = stop
    elseif char == 123 or char == 91 then
      depth = depth + 1
      key_next = depth == 1
    elseif char == 44 then
      key_next = depth == 1
    else
      depth = depth - 1
      if depth == 0 then
        if char ~= 125 or find(body, '[^ \t\r\n]', at + 1) then
          return
        end
        if first then
          return first, first + #text - 1, text
        end
        return at, nil, members
      end
    end
    at = at + 1
  end
end

-- raise(body): where attempts stand in the body and what they become: first and last position of what is
-- replaced (last is before first where there is nothing, and something is inserted), what goes before the number,
-- the raised number, and whether that is the canonical place at the very end. Returns nothing when attempts cannot
-- be edited safely. O(1) for a canonical body, else O(n).
-- (string.byte gets its index always: without one miniredis returns every byte, which overflows its stack.)
local function raise(body)
  local comma, stop, digits = string.find(body, ',"attempts":(%d+)}$', -32)
  if comma and #digits < 16 and (#digits == 1 or string.byte(digits, 1) ~= 48) and string.byte(body, 1) == 123 then
    return comma + 12, stop - 1, '', digits + 1, true
  end
  local first, last, text = locate(body)
  if not first then
    return
  end
  if not last then
    return first, first - 1, (text and ',' or '') .. '"attempts":', 1, false
  end
  if not string.find(text, '^%d+$') or #text > 1 and string.byte(text, 1) == 48 or #text > 16
    or tonumber(text) > 9007199254740990 then
    return
  end
  return first, last, '', text + 1, false
end

-- spell(number): its digits; plain concatenation would round above 14 digits.
local function spell(number)
  return number < 1e14 and tostring(number) or string.format('%.0f', number)
end

-- splice(body, first, last, text): the body with the text in place of body[first..last]. Redis's Lua hashes every
-- byte of every string it makes, and struct.pack makes one where cutting and joining make two.
local pack = rawget(_G, 'struct') and struct.pack
local function splice(body, first, last, text)
  local tail = text .. string.sub(body, last + 1)
  if pack then
    return pack('c' .. first - 1 .. 'c0', body, tail)
  end
  return string.sub(body, 1, first - 1) .. tail
end
