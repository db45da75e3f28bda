--- One connection to the daemon that comes back by itself: JSON-RPC 2.0, one message a line.

local uv = vim.uv

local FIRST_DELAY, LAST_DELAY = 100, 2000

---@class acphost.Options
---@field path fun(): string where the socket is
---@field hello fun(): table what `initialize` is given
---@field on_ready fun(info: acphost.InitializeResult) a connection has been made
---@field on_lost fun(reason: string) it is gone; another attempt follows
---@field on_notification fun(method: string, params: table)
---@field on_request fun(method: string, params: table): any, table? a result, or nil and an error

---@class acphost.Socket
---@field state "idle"|"connecting"|"ready"|"waiting"|"closed"
---@field private opts acphost.Options
local Socket = {}
Socket.__index = Socket

---@param opts acphost.Options
---@return acphost.Socket
function Socket.new(opts)
  return setmetatable({
    opts = opts,
    state = "idle",
    next_id = 0,
    pending = {},
    parts = {},
    delay = FIRST_DELAY,
  }, Socket)
end

--- Connect unless that is under way.
function Socket:open()
  if self.state ~= "idle" and self.state ~= "waiting" then
    return
  end
  self:_stop_timer()
  self.state = "connecting"
  local pipe = assert(uv.new_pipe(false))
  self.pipe, self.parts = pipe, {}
  local path = self.opts.path()
  pipe:connect(path, vim.schedule_wrap(function(problem)
    if self.pipe ~= pipe then
      return
    end
    if problem then
      self:_lost(("nobody answers at %s (%s)"):format(path, problem))
      return
    end
    pipe:read_start(vim.schedule_wrap(function(failure, chunk)
      if self.pipe ~= pipe then
        return
      end
      if failure or not chunk then
        self:_lost(failure or "the daemon went away")
      else
        self:_feed(chunk)
      end
    end))
    self:_greet()
  end))
end

--- End it for good.
function Socket:close()
  self.state = "closed"
  self:_stop_timer()
  self:_drop("closed")
end

--- Call a method. The callback gets an error object, or nil and the result.
--- Before there is a connection the error's code is `connection_lost`.
---@param method acphost.Method
---@param params table
---@param callback? fun(problem: table?, result: any)
function Socket:request(method, params, callback)
  callback = callback or function() end
  if self.state ~= "ready" then
    callback({ message = "there is no daemon", data = { code = "connection_lost" } })
    return
  end
  self:_call(method, params, callback)
end

---@private
function Socket:_call(method, params, callback)
  self.next_id = self.next_id + 1
  self.pending[self.next_id] = callback
  self:_send({ jsonrpc = "2.0", id = self.next_id, method = method, params = params })
end

---@private
function Socket:_greet()
  self:_call("initialize", self.opts.hello(), function(problem, info)
    if problem then
      self:_lost(problem.message)
      return
    end
    self.state, self.delay = "ready", FIRST_DELAY
    self.opts.on_ready(info)
  end)
end

---@private
function Socket:_send(message)
  if self.pipe then
    if message.params and next(message.params) == nil then
      message.params = vim.empty_dict()
    end
    self.pipe:write(vim.json.encode(message) .. "\n")
  end
end

--- Cut what was read into lines; the rest waits for more, unjoined so that long lines stay cheap.
---@private
function Socket:_feed(chunk)
  local from = 1
  while true do
    local to = chunk:find("\n", from, true)
    if not to then
      break
    end
    table.insert(self.parts, chunk:sub(from, to - 1))
    local line = table.concat(self.parts)
    self.parts, from = {}, to + 1
    self:_take(line)
    if not self.pipe then
      return
    end
  end
  if from <= #chunk then
    table.insert(self.parts, chunk:sub(from))
  end
end

---@private
function Socket:_take(line)
  local ok, message = pcall(vim.json.decode, line, { luanil = { object = true, array = true } })
  if not ok or type(message) ~= "table" then
    self:_lost("the daemon sent a line that is no JSON")
  elseif message.method and message.id ~= nil then
    self:_answer(message)
  elseif message.method then
    self.opts.on_notification(message.method, message.params or {})
  else
    local callback = self.pending[message.id]
    if callback then
      self.pending[message.id] = nil
      callback(message.error, message.result)
    end
  end
end

--- The daemon asks; it always gets an answer.
---@private
function Socket:_answer(message)
  local ok, result, refusal = pcall(self.opts.on_request, message.method, message.params or {})
  if not ok then
    refusal = { code = -32603, message = tostring(result) }
  elseif result == nil then
    refusal = refusal or { code = -32601, message = "not offered here: " .. message.method }
  end
  local answer = { jsonrpc = "2.0", id = message.id }
  answer[refusal and "error" or "result"] = refusal or result
  self:_send(answer)
end

---@private
function Socket:_lost(reason)
  if self.state == "closed" then
    return
  end
  self.state = "waiting"
  self:_drop(reason)
  local timer = assert(uv.new_timer())
  self.timer = timer
  timer:start(self.delay, 0, vim.schedule_wrap(function()
    if self.timer == timer then
      self:open()
    end
  end))
  self.delay = math.min(self.delay * 2, LAST_DELAY)
  self.opts.on_lost(reason)
end

--- Let go of the connection; whoever waits for an answer is told.
---@private
function Socket:_drop(reason)
  local pipe, pending = self.pipe, self.pending
  self.pipe, self.pending, self.parts = nil, {}, {}
  if pipe and not pipe:is_closing() then
    pipe:close()
  end
  for _, callback in pairs(pending) do
    callback({ message = reason, data = { code = "connection_lost" } })
  end
end

---@private
function Socket:_stop_timer()
  if self.timer then
    self.timer:stop()
    self.timer:close()
    self.timer = nil
  end
end

return Socket
