--- The model picker.

local server = require("jumpseat.server")

local M = {}

local OTHER = "Other ..."

---@param count number
local function short(count)
  return count >= 1000000 and ("%gM"):format(math.floor(count / 100000 + 0.5) / 10) or ("%dk"):format(count / 1000)
end

--- Describe a model on one line.
---@param model table an element of the result of `models.list`
---@param current string?
---@return string
function M.line(model, current)
  local supports = model.capabilities and model.capabilities.supports or {}
  local limits = model.capabilities and model.capabilities.limits or {}
  local facts = {}
  if model.name and model.name ~= model.id then
    facts[#facts + 1] = model.name
  end
  if limits.max_context_window_tokens then
    facts[#facts + 1] = short(limits.max_context_window_tokens)
  end
  if supports.vision then
    facts[#facts + 1] = "vision"
  end
  if supports.reasoningEffort then
    facts[#facts + 1] = "reasoning"
  end
  local mark = model.id == current and "● " or "  "
  return mark .. model.id .. (#facts > 0 and "  (" .. table.concat(facts, ", ") .. ")" or "")
end

local function by_name(session)
  vim.ui.input({ prompt = "Model name: " }, function(name)
    if name and vim.trim(name) ~= "" then
      session:use_model(vim.trim(name))
    end
  end)
end

--- List the models that a session can use, which depend on its provider.
---@param session jumpseat.Session
---@param done fun(problem: string?, models: table[]?)
function M.list(session, done)
  session:ensure(function(problem)
    if problem then
      return done(problem)
    end
    server.request("session.model.list", { sessionId = session.id }, function(failure, result)
      done(failure and failure.message, result and result.list)
    end)
  end)
end

--- Let the user choose the model of a session.
---@param session jumpseat.Session
function M.pick(session)
  local function choose(models)
    local current = session.model_shown or session.model
    local choices = vim.list_slice(models)
    choices[#choices + 1] = OTHER
    vim.ui.select(choices, {
      prompt = "Model",
      kind = "jumpseat_model",
      format_item = function(choice)
        return choice == OTHER and "  " .. OTHER or M.line(choice, current)
      end,
    }, function(choice)
      if choice == OTHER then
        by_name(session)
      elseif choice then
        session:use_model(choice.id)
      end
    end)
  end

  M.list(session, function(problem, found)
    if not session.attached then
      return vim.notify("jumpseat: " .. problem, vim.log.levels.ERROR)
    end
    session:fetch_model(function()
      -- Scheduled, because a `vim.ui.select` that blocks must not block the reading of messages.
      vim.schedule(function()
        if problem then
          vim.notify("jumpseat: cannot list models: " .. problem, vim.log.levels.WARN)
        end
        vim.cmd.redraw()
        choose(found or {})
      end)
    end)
  end)
end

return M
