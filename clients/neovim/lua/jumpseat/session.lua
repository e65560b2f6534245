--- A session of the server: sends prompts, receives events, and answers requests of the server.
--- Has no user interface: events go to `on_event`, changes of `state` to `on_change`.

local auto_mode = require("jumpseat.auto_mode")
local config = require("jumpseat.config")
local forms = require("jumpseat.forms")
local permissions = require("jumpseat.permissions")
local plans = require("jumpseat.plans")
local questions = require("jumpseat.questions")
local server = require("jumpseat.server")
local tools = require("jumpseat.tools")

---@class jumpseat.Session
---@field id? string nil before the first prompt
---@field state "idle"|"starting"|"running"
---@field model? string
---@field mode? "interactive"|"plan"|"autopilot"
---@field cwd string
---@field queue {id: string?, prompt: string}[] prompts that were sent and have not started
---@field on_event fun(event: table)
---@field on_change fun()
---@field on_problem fun(message: string)
---@field on_unsent fun(prompts: string[]) prompts that will not start any more
---@field prefix fun(): string prefix of this session's questions; "" if its chat is open
local Session = {}
Session.__index = Session

local M = {}

---@param listener {on_event: function, on_change: function, on_problem: function, on_unsent: function, prefix: function}
---@param id? string of a session to resume
---@return jumpseat.Session
function M.new(listener, id)
  return setmetatable({
    id = id,
    state = "idle",
    attached = false,
    stops = 0,
    waiting = {},
    queue = {},
    begun = {},
    calls = {},
    cwd = vim.fn.getcwd(),
    on_event = listener.on_event,
    on_change = listener.on_change,
    on_problem = listener.on_problem,
    on_unsent = listener.on_unsent,
    prefix = listener.prefix,
  }, Session)
end

-- Requests ---------------------------------------------------------------------------------------------------------

---@param state "idle"|"starting"|"running"
function Session:set_state(state)
  self.state = state
  self.on_change()
end

--- Return the common parameters of `session.create` and `session.resume`.
function Session:settings()
  local options = config.options
  local settings = vim.tbl_extend("force", {
    clientName = "jumpseat.nvim",
    workingDirectory = self.cwd,
    streaming = true,
    keepInterruptedAnswers = true,
    requestPermission = true,
    requestUserInput = true,
    requestElicitation = true,
    requestExitPlanMode = true,
    requestAutoModeSwitch = true,
    tools = tools.declarations(),
  }, options.session)
  settings.provider = options.provider
  -- A resumed session keeps its model, unless another was chosen here.
  settings.model = self.model or (not self.id and options.model or nil)
  return settings
end

--- Create or resume the session on the server unless attached to it already; then call `done(problem?)`.
---@param done fun(problem: string?)
function Session:ensure(done)
  if self.attached then
    return done()
  end
  self.waiting[#self.waiting + 1] = done
  if #self.waiting > 1 then
    return
  end
  local function settle(problem)
    local callbacks = self.waiting
    self.waiting = {}
    self.unreachable = problem ~= nil
    self.on_change()
    for _, callback in ipairs(callbacks) do
      callback(problem)
    end
  end
  local known = self.id
  local params = self:settings()
  -- An id chosen by the client is known before the first events, which precede the response.
  params.sessionId = known or ("nvim-%s-%06x"):format(os.date("!%Y%m%d-%H%M%S"), math.random(0, 0xffffff))
  server.get(function(problem)
    if problem then
      return settle(problem)
    end
    self.id = params.sessionId
    server.attach(self)
    server.request(known and "session.resume" or "session.create", params, function(failure, result)
      if failure then
        self.id = known
        return settle(failure.message)
      end
      self.attached = true
      self.mode = result.mode
      self:fetch_model()
      settle()
    end)
  end)
end

--- Request the name of the current model; then call `done()`.
---@param done? fun()
function Session:fetch_model(done)
  server.request("session.model.getCurrent", { sessionId = self.id }, function(failure, result)
    if not failure and result.modelId then
      self.model_shown = result.modelId
      self.on_change()
    end
    if done then
      done()
    end
  end)
end

--- Send a prompt. While a turn runs, the prompt is queued, or with `steer` added before the next call of the model.
---@param prompt string
---@param attachments? table[]
---@param steer? boolean
---@param done? fun(problem: string?)
---@param more? table further parameters, such as `displayPrompt`
function Session:send(prompt, attachments, steer, done, more)
  done = done or function() end
  if self.state == "idle" then
    self:set_state("starting")
  end
  local stops = self.stops
  local function failed(problem)
    if self.state == "starting" then
      self:set_state("idle")
    end
    self.on_problem(problem)
    done(problem)
  end
  self:ensure(function(problem)
    if problem then
      return failed(problem)
    elseif self.stops ~= stops then
      return failed("stopped before the prompt was sent")
    end
    local mode = steer and "immediate" or nil
    local params = { sessionId = self.id, prompt = prompt, attachments = attachments, mode = mode }
    params = vim.tbl_extend("keep", params, more or {})
    local queued = { prompt = prompt }
    self.queue[#self.queue + 1] = queued
    server.request("session.send", params, function(failure, result)
      if failure then
        self:unqueue(queued)
        return failed(failure.message)
      end
      queued.id = result.messageId
      -- The event may precede the response.
      if self.begun[queued.id] then
        self:unqueue(queued)
      end
      self.on_change()
      done()
    end)
  end)
end

---@private
---@return boolean removed
function Session:unqueue(queued)
  for index, one in ipairs(self.queue) do
    if one == queued then
      table.remove(self.queue, index)
      return true
    end
  end
  return false
end

--- Remove prompts that have not started from the queue and report them as unsent.
---@private
function Session:drop(list)
  local prompts = {}
  for _, queued in ipairs(list) do
    if self:unqueue(queued) then
      prompts[#prompts + 1] = queued.prompt
    end
  end
  if #prompts > 0 then
    self.on_unsent(prompts)
  end
  self.on_change()
end

--- Stop the running turn, withdraw its questions, and report queued prompts as unsent.
function Session:abort()
  self.stops = self.stops + 1
  questions.withdraw(self)
  if self.attached and self.state ~= "idle" then
    local waiting = vim.list_slice(self.queue)
    server.request("session.abort", { sessionId = self.id }, function(failure)
      if failure then
        return self.on_problem(failure.message)
      end
      self:drop(waiting)
    end)
  end
end

--- Change the mode of the session.
---@param mode "interactive"|"plan"|"autopilot"
function Session:use_mode(mode)
  self:ensure(function(problem)
    if problem then
      return self.on_problem(problem)
    end
    server.request("session.mode.set", { sessionId = self.id, mode = mode }, function(failure)
      if failure then
        self.on_problem(failure.message)
      end
    end)
  end)
end

--- Use another model from the next call of the model on.
---@param name string
function Session:use_model(name)
  self.model, self.model_shown = name, name
  self.on_change()
  if self.attached then
    server.request("session.model.switchTo", { sessionId = self.id, modelId = name }, function(failure)
      if failure then
        self.on_problem(failure.message)
      end
    end)
  end
end

--- Request the persisted events of the session.
---@param done fun(problem: string?, events: table[]?)
function Session:history(done)
  self:ensure(function(problem)
    if problem then
      return done(problem)
    end
    server.request("session.getMessages", { sessionId = self.id }, function(failure, result)
      done(failure and failure.message, result and result.events)
    end)
  end)
end

-- Events and requests of the server --------------------------------------------------------------------------------

local EVENT_HANDLERS = {
  ["user.message"] = function(self, data)
    local id = data.messageId
    if id then
      self.begun[id] = true
      for _, queued in ipairs(vim.list_slice(self.queue)) do
        if queued.id == id then
          self:unqueue(queued)
        end
      end
    end
    self:set_state("running")
  end,
  ["session.idle"] = function(self)
    questions.withdraw(self)
    self.begun, self.calls = {}, {}
    if not self.model_shown then
      self:fetch_model()
    end
    self:set_state("idle")
    vim.api.nvim_exec_autocmds("User", { pattern = "JumpseatIdle", data = { session = self.id } })
  end,
  ["session.model_change"] = function(self, data)
    self.model_shown = data.newModel
    self.on_change()
  end,
  ["session.mode_changed"] = function(self, data)
    self.mode = data.newMode
    self.on_change()
  end,
  ["session.usage_info"] = function(self, data)
    self.tokens, self.token_limit = data.currentTokens, data.tokenLimit
    self.on_change()
  end,
  ["permission.requested"] = function(self, data)
    if not data.resolvedByHook then
      self:ask_permission(data.requestId, data.permissionRequest or {})
    end
  end,
  ["permission.completed"] = function(self, data)
    questions.withdraw(self, data.requestId)
  end,
  ["elicitation.requested"] = function(self, data)
    forms.ask(self, data, function(result)
      local params = { sessionId = self.id, requestId = data.requestId, result = result }
      server.request("session.ui.handlePendingElicitation", params)
    end)
  end,
  ["auto_mode_switch.completed"] = function(self)
    questions.withdraw(self, auto_mode.ID)
  end,
  ["elicitation.completed"] = function(self, data)
    questions.withdraw(self, data.requestId)
  end,
  ["tool.execution_start"] = function(self, data)
    self.calls[data.toolCallId] = data.arguments
  end,
  ["external_tool.requested"] = function(self, data)
    self:run_tool(data)
  end,
  ["tool.execution_complete"] = function(self)
    tools.reload_changed_buffers()
  end,
}

---@param event {type: string, data: table?, agentId: string?}
function Session:receive(event)
  local data = event.data or {}
  self.on_event(event)
  local handle = EVENT_HANDLERS[event.type]
  -- Sub-agents change files, too; their questions come without an agent.
  if handle and (not event.agentId or event.type:find("^tool%.")) then
    handle(self, data)
  end
end

---@private
function Session:ask_permission(request_id, request)
  local decide = function(decision)
    local params = { sessionId = self.id, requestId = request_id, result = decision }
    server.request("session.permissions.handlePendingPermissionRequest", params)
  end
  -- A host's policy may want a person to decide.
  if not request.managedApprovalRequired and tools.runs_without_asking(request, self:context()) then
    return decide({ kind = "approve-once" })
  end
  local call = self.calls[request.toolCallId]
  permissions.ask(self, request_id, request, type(call) == "table" and call or nil, decide)
end

--- Return the context argument of tools.
function Session:context()
  return { session_id = self.id, cwd = self.cwd }
end

---@private
function Session:run_tool(call)
  if not tools.has(call.toolName) then
    return
  end
  tools.run(call.toolName, call.arguments, self:context(), function(answer)
    answer.sessionId, answer.requestId = self.id, call.requestId
    server.request("session.tools.handlePendingToolCall", answer)
  end)
end

--- Ask the user a question of the model.
function Session:ask_user(params, reply)
  questions.ask_user(self, params, reply)
end

--- Ask the user to approve a plan of the model.
function Session:ask_plan(params, reply)
  plans.ask(self, params, reply)
end

--- Ask the user whether the provider may choose another model in place of a rate-limited one.
function Session:ask_auto_mode(params, reply)
  auto_mode.ask(self, params, reply)
end

--- Handle the exit of the server; the next prompt starts another and resumes the session.
function Session:server_gone(reason)
  questions.withdraw(self)
  self.attached = false
  self:set_state("idle")
  self.on_problem(reason)
  self.begun = {}
  self:drop(vim.list_slice(self.queue))
end

return M
