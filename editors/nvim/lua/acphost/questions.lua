--- What agents ask people: permission for something, a form to fill in, an address to visit.

local M = {}

---@alias acphost.Answer fun(method: acphost.Method?, params: table?) without a method: not now

-- permission ---------------------------------------------------------------------------------------

---@param decision acphost.Decision
---@param answer acphost.Answer
local function permission(decision, answer)
  local call = decision.toolCall or (decision.request or {}).toolCall or {}
  vim.ui.select(decision.options or {}, {
    prompt = call.title or "An agent asks for permission",
    kind = "acphost.permission",
    format_item = function(option)
      return option.name ~= "" and option.name or option.optionId
    end,
  }, function(option)
    if not option then
      return answer()
    end
    answer("permission/respond", {
      permissionId = decision.permissionId,
      optionId = option.optionId,
    })
  end)
end

-- forms --------------------------------------------------------------------------------------------

---@class acphost.Field
---@field name string
---@field about table its JSON Schema
---@field is_required boolean

--- The fields of a form: what is required first, in its order, then the rest by name.
---@return acphost.Field[]
local function fields_of(schema)
  local properties, fields, rest = schema.properties or {}, {}, {}
  for _, name in ipairs(schema.required or {}) do
    if properties[name] then
      table.insert(fields, { name = name, about = properties[name], is_required = true })
    end
  end
  for name, about in pairs(properties) do
    if not vim.list_contains(schema.required or {}, name) then
      table.insert(rest, { name = name, about = about, is_required = false })
    end
  end
  table.sort(rest, function(one, other)
    return one.name < other.name
  end)
  return vim.list_extend(fields, rest)
end

--- What can be chosen for a field, as a list of {value, label}; nil: it is written.
local function choices_of(about)
  if about.type == "boolean" then
    return { { true, "yes" }, { false, "no" } }
  elseif about.oneOf then
    return vim.tbl_map(function(one)
      return { one.const, one.title or tostring(one.const) }
    end, about.oneOf)
  elseif about.enum then
    local choices = {}
    for place, value in ipairs(about.enum) do
      choices[place] = { value, (about.enumNames or {})[place] or tostring(value) }
    end
    return choices
  end
end

--- What a person wrote, as the field wants it; nil: nothing.
local function value_of(about, text)
  if text == "" then
    return nil
  elseif about.type == "number" or about.type == "integer" then
    return tonumber(text) or text -- the daemon says what is wrong with it
  elseif about.type == "array" then
    return vim.split(text, "%s*,%s*", { trimempty = true })
  end
  return text
end

---@param field acphost.Field
---@param done fun(is_filled: boolean, value: any)
local function fill(field, done)
  local about = field.about
  local prompt = (about.title or field.name) .. (field.is_required and "" or " (optional)")
  local choices = choices_of(about)
  if choices then
    vim.ui.select(choices, {
      prompt = prompt,
      kind = "acphost.field",
      format_item = function(choice)
        return choice[2]
      end,
    }, function(choice)
      done(choice ~= nil or not field.is_required, choice and choice[1])
    end)
    return
  end
  local default = about.default ~= nil and tostring(about.default) or nil
  vim.ui.input({ prompt = prompt .. ": ", default = default }, function(text)
    done(text ~= nil, text and value_of(about, text))
  end)
end

--- Ask field after field; `done` without content if a person has left off.
local function fill_all(fields, place, content, done)
  local field = fields[place]
  if not field then
    return done(content)
  end
  fill(field, function(is_filled, value)
    if not is_filled then
      return done()
    end
    content[field.name] = value
    fill_all(fields, place + 1, content, done)
  end)
end

---@param decision acphost.Decision
---@param answer acphost.Answer
local function elicitation(decision, answer)
  local request = decision.request or {}
  local is_form = request.mode ~= "url"
  local yes = is_form and "Fill in" or ("Open " .. (request.url or ""))
  vim.ui.select({ yes, "Decline" }, {
    prompt = request.message or "An agent asks for something",
    kind = "acphost.elicitation",
  }, function(choice)
    local function respond(action, content)
      answer("elicitation/respond", {
        elicitationId = decision.permissionId,
        action = action,
        content = content,
      })
    end
    if not choice then
      answer()
    elseif choice ~= yes then
      respond("decline")
    elseif not is_form then
      vim.ui.open(request.url)
      respond("accept")
    else
      fill_all(fields_of(request.requestedSchema or {}), 1, vim.empty_dict(), function(content)
        if content then
          respond("accept", content)
        else
          answer()
        end
      end)
    end
  end)
end

--- Ask a person; they may close the dialog, and the question stays open.
---@param decision acphost.Decision
---@param answer acphost.Answer
function M.ask(decision, answer)
  local how = decision.kind == "elicitation" and elicitation or permission
  how(decision, answer)
end

--- An event that opens a form or an address, as `permission/list` shows it.
---@param payload table
---@return acphost.Decision
function M.of_elicitation(payload)
  return { permissionId = payload.elicitationId, kind = "elicitation", request = payload.request }
end

return M
