--- A session as this editor follows it: its events once and in order, its queue, its open questions.
---
--- The place in it survives the daemon (subscribe again after the last seq) and Neovim (memory).

local memory = require("acphost.memory")
local questions = require("acphost.questions")

local TERMINAL = {
  ["run.completed"] = true,
  ["run.failed"] = true,
  ["run.cancelled"] = true,
  ["run.interrupted"] = true,
}

--- After them nobody is asked any more.
local CLOSES = {
  ["permission.resolved"] = true,
  ["permission.expired"] = true,
  ["elicitation.resolved"] = true,
  ["elicitation.expired"] = true,
}

---@class acphost.View
---@field event fun(event: acphost.Event, is_news: boolean)
---@field state fun() status, queue or connection changed
---@field question fun(decision: acphost.Decision) an agent asks; called once for each
---@field settled fun(permission_id: string, payload: table) somebody has answered it, or nobody can
---@field caught_up fun() history has ended

---@class acphost.Session
local Session = {}
Session.__index = Session

---@param socket acphost.Socket
---@param cwd string
---@param view acphost.View
function Session.new(socket, cwd, view)
  return setmetatable({
    socket = socket,
    cwd = cwd,
    view = view,
    id = nil,
    agent = nil,
    status = "new",
    run = nil,
    queued = {},
    questions = {},
    held = nil,
    last_seq = "0",
    news_after = "",
    is_live = false,
    outbox = {},
  }, Session)
end

-- following ----------------------------------------------------------------------------------------

--- Follow a session from where it was left, or from the last `history` events.
---@param session acphost.Session the session as the daemon tells it
---@param remembered? acphost.Remembered
---@param history integer
function Session:follow(session, remembered, history)
  self.id, self.agent, self.status = session.sessionId, session.agentId, session.status
  local known = remembered and remembered.sessionId == self.id and remembered.lastSeq
  self.news_after = known or session.lastSeq
  local from = math.max(tonumber(self.news_after) - history, 0)
  self.last_seq = ("%018d"):format(from)
  self:resume()
end

--- Subscribe after the last event seen; also after the connection was lost.
function Session:resume()
  if not self.id then
    self:_send_waiting()
    return
  end
  self.is_live = false
  local store = self.store
  self.subscription = nil
  self.socket:request("session/activeRun", { sessionId = self.id }, function(problem, active)
    if problem then
      self:_cannot_follow(problem)
      return
    end
    self.run, self.queued = active.run, active.queued
    local params = {
      scope = { sessionId = self.id },
      afterSeq = self.last_seq,
      storeId = store,
    }
    self.socket:request("events/subscribe", params, function(refused, subscribed)
      if refused then
        self:_cannot_follow(refused)
        return
      end
      self.subscription = subscribed.subscriptionId
      self:_send_waiting()
      self:refresh()
    end)
  end)
end

--- A session that is gone, or a store that is another one: begin anew and show nothing as running.
---@private
function Session:_cannot_follow(problem)
  local code = problem.data and problem.data.code
  if code == "connection_lost" then
    return
  end
  memory.forget(self.cwd)
  self.id, self.run, self.queued, self.last_seq, self.store = nil, nil, {}, "0", nil
  self.status = "new"
  self.view.state()
  vim.notify("acphost: " .. problem.message, vim.log.levels.WARN)
end

--- A notification with events of this session.
---@param params acphost.EventsNotification
function Session:take(params)
  if params.subscriptionId ~= self.subscription then
    return
  end
  for _, event in ipairs(params.events) do
    self:_take(event)
  end
  if params.cursor.seq and params.cursor.seq > self.last_seq then
    self.last_seq = params.cursor.seq
  end
  if params.caughtUp and not self.is_live then
    self.is_live = true
    self.view.caught_up()
    self:_ask_what_is_open()
  end
  self:_remember()
  self.view.state()
end

---@private
function Session:_take(event)
  if event.seq and event.seq <= self.last_seq then
    return
  end
  self.last_seq = event.seq or self.last_seq
  local kind, payload = event.kind, event.payload or {}
  if TERMINAL[kind] then
    self:_drop_queued(event.hostRunId)
    if self.run and self.run.hostRunId == event.hostRunId and kind ~= "run.interrupted" then
      self.run = nil
    end
    self:_refresh_soon()
  elseif kind == "run.started" then
    self:_drop_queued(event.hostRunId)
    self.run = { hostRunId = event.hostRunId, sessionId = self.id, createdAt = event.createdAt }
    self:_refresh_soon()
  elseif kind == "run.queued" or kind:match("^queue%.") or kind == "run.dismissed" then
    self:_refresh_soon()
  elseif kind == "permission.requested" and self.is_live then
    self:_question(payload)
  elseif kind == "elicitation.requested" and self.is_live then
    self:_question(questions.of_elicitation(payload))
  elseif CLOSES[kind] then
    local id = payload.permissionId or payload.elicitationId or ""
    self.questions[id] = nil
    self.view.settled(id, payload)
  end
  self.view.event(event, event.seq ~= nil and event.seq > self.news_after)
end

---@private
function Session:_drop_queued(run_id)
  self.queued = vim.tbl_filter(function(item)
    return item.runId ~= run_id
  end, self.queued)
end

-- state --------------------------------------------------------------------------------------------

--- Events tell that something has changed; what is true now is asked once for many of them.
---@private
function Session:_refresh_soon()
  if not self.is_refreshing and self.is_live then
    self.is_refreshing = true
    vim.defer_fn(function()
      self.is_refreshing = false
      self:refresh()
    end, 20)
  end
end

--- Ask how the session is: status, run, queue.
---@param done? fun()
function Session:refresh(done)
  local id = self.id
  if not id then
    return
  end
  self.socket:request("session/get", { sessionId = id }, function(problem, session)
    if problem or self.id ~= id then
      return
    end
    self.status, self.status_reason = session.status, session.statusReason
    self.recovery = session.recovery
    self.held = session.status == "held" and (session.statusReason or "held") or nil
    self.socket:request("session/activeRun", { sessionId = id }, function(refused, active)
      if refused or self.id ~= id then
        return
      end
      self.run, self.queued = active.run, active.queued
      self:_remember()
      self.view.state()
      if done then
        done()
      end
    end)
  end)
end

---@private
function Session:_remember()
  if not self.id or not self.store then
    return
  end
  local run = self.run
  memory.save(self.cwd, {
    sessionId = self.id,
    storeId = self.store,
    lastSeq = self.last_seq,
    activeRun = run and memory.snapshot(run, self.last_seq) or nil,
  })
end

-- questions ----------------------------------------------------------------------------------------

---@private
function Session:_ask_what_is_open()
  self.socket:request("permission/list", { sessionId = self.id }, function(problem, page)
    for _, decision in ipairs(not problem and page.items or {}) do
      self:_question(decision)
    end
  end)
end

---@private
function Session:_question(decision)
  if not self.questions[decision.permissionId] then
    self.questions[decision.permissionId] = decision
    self.view.question(decision)
    self.view.state()
  end
end

--- Answer a question; the first answer of all clients counts.
---@param method acphost.Method
---@param params table
function Session:answer(method, params)
  self.socket:request(method, params, function(problem)
    if problem and problem.data.code ~= "already_resolved" then
      vim.notify("acphost: " .. problem.message, vim.log.levels.WARN)
    end
  end)
end

-- sending ------------------------------------------------------------------------------------------

--- Send a prompt. It has an id of its own, so that it can be sent again after a lost connection
--- and is one run all the same.
---@param prompt table[] content blocks
---@param refs string[]
---@param done fun(problem: table?, run: acphost.Run?)
function Session:send(prompt, refs, done)
  local bytes = vim.uv.random(12)
  local request_id = "nvim-" .. bytes:gsub(".", function(char)
    return ("%02x"):format(char:byte())
  end)
  table.insert(self.outbox, {
    params = { requestId = request_id, prompt = prompt, contextRefs = refs },
    done = done,
  })
  self:_send_waiting()
end

---@private
function Session:_send_waiting()
  local item = self.outbox[1]
  if not item or item.is_sent or self.socket.state ~= "ready" then
    return
  end
  if self.is_opening or (self.id and not self.subscription) then
    return -- it is sent when the subscription stands
  end
  local params = vim.deepcopy(item.params)
  if #params.contextRefs == 0 then
    params.contextRefs = nil
  end
  if self.id then
    params.sessionId = self.id
  else
    params.agentId, params.cwd = self.agent, self.cwd
  end
  item.is_sent = true
  self.socket:request("run/create", params, function(problem, run)
    item.is_sent = false
    if problem and (problem.data or {}).code == "connection_lost" then
      return -- `resume` sends it again
    end
    table.remove(self.outbox, 1)
    if run and not self.id then
      self:_opened(run.sessionId)
    end
    item.done(problem, run)
    self:_send_waiting()
  end)
end

--- The first message has made a session.
---@private
function Session:_opened(session_id)
  self.id, self.last_seq, self.news_after = session_id, "0", "0"
  self:_remember()
  self:resume()
end

--- Stop the turn; with `hold` nothing of the queue starts after it.
---@param hold boolean
function Session:stop(hold)
  local run = self.run
  if not run then
    vim.notify("acphost: nothing is running", vim.log.levels.INFO)
    return
  end
  self:call("run/cancel", { hostRunId = run.hostRunId, holdQueue = hold or nil })
end

--- Call a method that changes something here, say what went wrong, and look again.
---@param method acphost.Method
---@param params table
---@param done? fun(result: any)
function Session:call(method, params, done)
  self.socket:request(method, params, function(problem, result)
    if problem then
      vim.notify("acphost: " .. problem.message, vim.log.levels.WARN)
      return
    end
    self:refresh()
    if done then
      done(result)
    end
  end)
end

return Session
