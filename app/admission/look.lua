-- What a bucket holds at one moment: buyers, marks, and the fields of its sale.
-- KEYS: sale, buyers, marks.
return {redis.call('HLEN', KEYS[2]), redis.call('HLEN', KEYS[3]), redis.call('HGETALL', KEYS[1])}
