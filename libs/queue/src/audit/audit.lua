-- Adds an entry, in place of the entry that was written when its call began. Repeated refusals become one entry with a count.
-- KEYS log, refusals of the day. ARGV id of the entry from the call's begin or '', oldest time that is kept in ms, group of equal refusals
-- ('' if this is no refusal), most entries of refusals, ms to keep the refusals, fields... (without fields nothing is added).
-- Answers the new entry's id.
function scripts.writeAudit()
  if ARGV[1] ~= '' then redis.call('XDEL', KEYS[1], ARGV[1]) end
  if #ARGV < 6 then return '' end
  local function add(...) return redis.call('XADD', KEYS[1], 'MINID', '~', ARGV[2], '*', ...) end
  if ARGV[3] == '' then return add(unpack(ARGV, 6)) end
  local group, fields = ARGV[3], {unpack(ARGV, 6)}
  if redis.call('HEXISTS', KEYS[2], group) == 0 and redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[4]) then
    group, fields = '', {'call', 'further refusals of the day', 'outcome', 'PERMISSION_DENIED'}
  end
  local id, count = string.match(redis.call('HGET', KEYS[2], group) or '', '(%S+) (%d+)')
  if id then redis.call('XDEL', KEYS[1], id) end
  count = string.format('%d', (count or 0) + 1)
  local new = add('count', count, unpack(fields))
  redis.call('HSET', KEYS[2], group, new .. ' ' .. count)
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
  return new
end
