-- Repeats the steps of an ended task's events, KEYS[1], until there are ARGV[1] events.
local events = redis.call('XRANGE', KEYS[1], '-', '+')
local steps = {}
for _, event in ipairs(events) do
  if cjson.decode(event[2][2]).type == 'step' then steps[#steps + 1] = event[2][2] end
end
local finished = table.remove(events)
redis.call('DEL', KEYS[1])
for _, event in ipairs(events) do redis.call('XADD', KEYS[1], '*', unpack(event[2])) end
for n = #events + 1, ARGV[1] - 1 do redis.call('XADD', KEYS[1], '*', 'e', steps[n % #steps + 1]) end
redis.call('XADD', KEYS[1], '*', unpack(finished[2]))
return redis.call('XLEN', KEYS[1])
