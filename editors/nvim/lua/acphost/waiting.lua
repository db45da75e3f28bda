--- What waits in a session's queue, and what can be done with it.

local M = {}

--- The text of a waiting message, and the whole prompt with another one in its place.
---@param item acphost.QueuedRun
---@return string, fun(text: string): table[]
local function words_of(item)
  local place, text = #item.payload + 1, ""
  for index, block in ipairs(item.payload) do
    if block.type == "text" then
      place, text = index, block.text
    end
  end
  return text, function(changed)
    local prompt = vim.deepcopy(item.payload)
    prompt[place] = { type = "text", text = changed }
    return prompt
  end
end

local ACTIONS = {}

ACTIONS["Take it back"] = function(session, item)
  session:call("run/cancel", { hostRunId = item.runId })
end

ACTIONS["Change its text"] = function(session, item, write)
  local text, prompt_with = words_of(item)
  write(text, function(changed)
    session:call("queue/edit", {
      hostRunId = item.runId,
      expectedRev = item.rev,
      prompt = prompt_with(changed),
    })
  end)
end

ACTIONS["Send it next"] = function(session, item)
  session:call("queue/move", { hostRunId = item.runId, expectedRev = item.rev, position = 0 })
end

local LABELS = { "Take it back", "Change its text", "Send it next" }

--- Choose a waiting message, then what is to become of it.
---@param session acphost.Session
---@param write fun(text: string, done: fun(text: string))
function M.choose(session, write)
  vim.ui.select(session.queued, {
    prompt = "Waiting messages",
    kind = "acphost.queue",
    format_item = function(item)
      return item.preview
    end,
  }, function(item)
    if not item then
      return
    end
    vim.ui.select(LABELS, { prompt = item.preview, kind = "acphost.queue.action" }, function(label)
      if label then
        ACTIONS[label](session, item, write)
      end
    end)
  end)
end

return M
