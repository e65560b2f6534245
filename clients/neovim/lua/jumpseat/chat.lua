--- A chat: a session, its transcript, the prompt buffer, and their windows.

local config = require("jumpseat.config")
local commands = require("jumpseat.commands")
local editor = require("jumpseat.editor")
local session = require("jumpseat.session")
local transcript = require("jumpseat.transcript")

local M = {}

---@class jumpseat.Chat
---@field session jumpseat.Session
---@field transcript jumpseat.Transcript
---@field input integer buffer
local Chat = {}
Chat.__index = Chat

local count = 0

---@param id? string of a session to resume
---@return jumpseat.Chat
function M.new(id)
  count = count + 1
  local self = setmetatable({ thinking = {}, streamed = {}, attachments = {}, prompts = {}, place = 0 }, Chat)
  self.transcript = transcript.new(("jumpseat://chat/%d"):format(count))
  self.input = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(self.input, ("jumpseat://prompt/%d"):format(count))
  vim.bo[self.input].filetype = "jumpseat_prompt"
  vim.bo[self.input].omnifunc = "v:lua.require'jumpseat.commands'.omnifunc"
  vim.bo[self.input].bufhidden = "hide"
  self.session = session.new({
    on_event = function(event)
      if self.replaying then
        table.insert(self.replaying, event)
      else
        self:show_event(event)
      end
    end,
    on_change = function()
      self:show_state()
    end,
    on_problem = function(message)
      self.transcript:settle("connection lost")
      self.transcript:note("✗ " .. message)
    end,
    on_unsent = function(prompts)
      self:restore_prompts(prompts)
    end,
    prefix = function()
      return self:is_open() and "" or ("[%s] "):format(self:name())
    end,
  }, id)
  self:map_keys()
  -- Closed windows can be opened again; a wiped-out chat cannot, so its questions could not be answered.
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = self.transcript.buf,
    callback = function()
      self.session:abort()
    end,
  })
  local model = config.options.keymaps.model
  local keys = model and model.n and ("%s chooses a model, /help lists the commands."):format(model.n)
  self.transcript:welcome("Write a prompt below.", keys or "/help lists the commands.")
  return self
end

-- Events -----------------------------------------------------------------------------------------------------------

--- Arguments shown in the title of a tool call; the first present one is used.
local TITLE_ARGUMENTS = { "command", "pattern", "path", "file_path", "query", "url", "skill", "description", "question", "name" }

local function title_of(data)
  local arguments = type(data.arguments) == "table" and data.arguments or {}
  local title = data.toolName or "?"
  for _, name in ipairs(TITLE_ARGUMENTS) do
    if type(arguments[name]) == "string" and arguments[name] ~= "" then
      local value = name:find("path") and vim.fn.fnamemodify(arguments[name], ":~:.") or arguments[name]
      title = title .. "  " .. value
      break
    end
  end
  return vim.fn.strcharpart(title, 0, 120)
end

local function arguments_of(data)
  local arguments = data.arguments
  if type(arguments) == "string" then
    return arguments
  elseif type(arguments) ~= "table" then
    return ""
  end
  local names = vim.tbl_keys(arguments)
  table.sort(names)
  local lines = {}
  for _, name in ipairs(names) do
    local value = arguments[name]
    value = type(value) == "string" and value:gsub("%s+$", "") or vim.json.encode(value)
    lines[#lines + 1] = ("%s: %s"):format(name, value)
  end
  return table.concat(lines, "\n")
end

local RENDERERS = {
  ["user.message"] = function(self, data)
    -- Messages that the server adds for the model have another source.
    if data.source and data.source ~= "user" then
      return
    end
    local names = {}
    for _, one in ipairs(data.attachments or {}) do
      names[#names + 1] = one.displayName or one.filePath or one.path or one.type
    end
    self.transcript:user(data.content or "", names)
  end,
  ["assistant.reasoning_delta"] = function(self, data)
    table.insert(self.thinking, data.deltaContent or "")
  end,
  ["assistant.reasoning"] = function(self, data)
    if data.reasoningId and self.thought == data.reasoningId then
      return
    end
    self.thinking = {}
    self.transcript:thought(data.content or "")
  end,
  ["assistant.message_delta"] = function(self, data)
    self:show_thinking()
    self.streamed[data.messageId or ""] = true
    self.transcript:text(data.deltaContent or "")
  end,
  ["assistant.message"] = function(self, data)
    self:show_thinking()
    local text = data.content or ""
    if not self.streamed[data.messageId or ""] and vim.trim(text) ~= "" then
      self.transcript:end_text()
      self.transcript:text(text)
    end
    self.streamed = {}
  end,
  ["assistant.turn_end"] = function(self)
    self:show_thinking()
  end,
  ["tool.execution_start"] = function(self, data)
    self.transcript:tool_started(data.toolCallId, title_of(data), arguments_of(data))
  end,
  ["tool.execution_partial_result"] = function(self, data)
    self.transcript:tool_progress(data.toolCallId, data.partialOutput or "")
  end,
  ["tool.execution_progress"] = function(self, data)
    self.transcript:tool_progress(data.toolCallId, data.progressMessage or "")
  end,
  ["tool.execution_complete"] = function(self, data)
    local result = data.result or {}
    local diff = (result.detailedContent or ""):find("^%-%-%- ") and result.detailedContent or nil
    -- A tool may have its own text for the user.
    local text = not diff and result.detailedContent or nil
    if data.success then
      self.transcript:tool_finished(data.toolCallId, { result = text or result.content, diff = diff })
    else
      local error = data.error or {}
      local refused = error.code == "rejected" or error.code == "denied"
      local problem = text or error.message or "failed"
      self.transcript:tool_finished(data.toolCallId, { problem = problem, summary = refused and "denied" or nil })
    end
  end,
  ["session.error"] = function(self, data)
    self.transcript:note("✗ " .. (data.message or "the turn failed"):gsub("^Execution failed: ", ""))
  end,
  ["session.warning"] = function(self, data)
    self.transcript:note("! " .. (data.message or "?"))
  end,
  ["abort"] = function(self)
    self.thinking = {}
    self.transcript:settle("stopped")
    self.transcript:note("stopped")
  end,
  ["session.info"] = function(self, data)
    self.transcript:note(data.message or "")
  end,
  ["session.compaction_complete"] = function(self, data)
    if data.success then
      local before, after = data.preCompactionTokens or 0, data.postCompactionTokens or 0
      self.transcript:note(
        ("conversation summarized: context reduced from about %d to %d tokens"):format(before, after)
      )
    else
      self.transcript:note("! cannot summarize the conversation: " .. (data.error or "?"))
    end
  end,
  ["session.idle"] = function(self)
    self.transcript:settle("no result")
  end,
}

--- Show the reasoning received so far, as a whole, before the answer.
function Chat:show_thinking()
  if #self.thinking > 0 then
    local text = table.concat(self.thinking)
    self.thinking = {}
    self.transcript:thought(text)
  end
end

---@param event {type: string, data: table?, agentId: string?}
function Chat:show_event(event)
  local data = event.data or {}
  if event.type == "assistant.reasoning_delta" then
    self.thought = data.reasoningId
  end
  local show = RENDERERS[event.type]
  -- Events of a sub-agent are not shown; the tool call that started it is.
  if show and not event.agentId and vim.api.nvim_buf_is_valid(self.transcript.buf) then
    show(self, data)
  end
end

--- Show the history of a resumed session, then the events received meanwhile.
function Chat:replay()
  self.replaying = {}
  self.session:history(function(problem, events)
    local meanwhile = self.replaying
    self.replaying = nil
    if problem then
      return self.transcript:note("✗ " .. problem)
    end
    local seen = {}
    for _, event in ipairs(events) do
      seen[event.id] = true
      if event.type == "user.message" and not event.data.source then
        self.prompts[#self.prompts + 1] = event.data.content
        self.place = #self.prompts + 1
      end
      self:show_event(event)
    end
    self.transcript:settle("no result")
    for _, event in ipairs(meanwhile) do
      if not seen[event.id] then
        self:show_event(event)
      end
    end
  end)
end

-- Prompts ----------------------------------------------------------------------------------------------------------

--- Attach lines of a file to the next prompt.
---@param selection {path: string, name: string, first: integer, last: integer, text: string}
function Chat:attach(selection)
  local place = ("%s:%d-%d"):format(selection.name, selection.first, selection.last)
  self.attachments[#self.attachments + 1] = {
    type = "selection",
    filePath = selection.path ~= "" and selection.path or selection.name,
    displayName = place,
    text = selection.text,
    selection = {
      start = { line = selection.first - 1, character = 0 },
      ["end"] = { line = selection.last - 1, character = 0 },
    },
  }
  self:show_state()
end

--- Send a prompt, or run a slash command. `steer` adds the prompt to the running turn.
---@param prompt string
---@param steer? boolean
function Chat:send(prompt, steer)
  if vim.trim(prompt) == "" then
    return
  end
  self.prompts[#self.prompts + 1] = prompt
  self.place = #self.prompts + 1
  local name, rest = commands.parse(prompt)
  if name then
    return commands.run(self, name, rest)
  end
  local attached = vim.list_extend(vim.list_slice(self.attachments), editor.mentioned(prompt, self.session.cwd))
  local attachments = #attached > 0 and attached or nil
  local selections = self.attachments
  self.attachments = {}
  self.session:send(prompt, attachments, steer, function(problem)
    -- A prompt that was not sent is put back, unless another was written meanwhile.
    if problem and self:is_valid() and self:draft() == "" then
      self:set_draft(prompt)
      self.attachments = selections
      self:show_state()
    end
  end)
end

--- Put unsent prompts back into the prompt buffer, or show them if it is not empty.
---@param prompts string[]
function Chat:restore_prompts(prompts)
  if not self:is_valid() then
    return
  end
  local text = table.concat(prompts, "\n\n")
  if self:draft() == "" then
    self:set_draft(text)
  else
    self.transcript:note("! not sent:\n" .. text)
  end
end

function Chat:draft()
  return table.concat(vim.api.nvim_buf_get_lines(self.input, 0, -1, false), "\n")
end

---@param text string
function Chat:set_draft(text)
  vim.api.nvim_buf_set_lines(self.input, 0, -1, false, vim.split(text, "\n", { plain = true }))
  local win = vim.fn.bufwinid(self.input)
  if win ~= -1 then
    local last = vim.api.nvim_buf_line_count(self.input)
    vim.api.nvim_win_set_cursor(win, { last, #vim.api.nvim_buf_get_lines(self.input, -2, -1, false)[1] })
  end
end

---@param steer? boolean
function Chat:send_draft(steer)
  local prompt = self:draft()
  if vim.trim(prompt) == "" then
    return
  end
  self:set_draft("")
  vim.cmd.stopinsert()
  self:send(prompt, steer)
end

--- Recall an earlier or later prompt; after the last comes an empty one.
---@param step -1|1
function Chat:recall(step)
  local place = math.max(1, math.min(#self.prompts + 1, self.place + step))
  if place ~= self.place then
    self.place = place
    self:set_draft(self.prompts[place] or "")
  end
end

function Chat:stop()
  self.session:abort()
end

-- Windows ----------------------------------------------------------------------------------------------------------

-- Least width of the chat in columns, if as much is left for the windows beside it.
local LEAST_COLUMNS = 40
local SPLITS = { right = "botright vsplit", left = "topleft vsplit", top = "topleft split", bottom = "botright split" }

--- Return whether both buffers still exist; the user may wipe them out.
function Chat:is_valid()
  return vim.api.nvim_buf_is_valid(self.transcript.buf) and vim.api.nvim_buf_is_valid(self.input)
end

function Chat:is_open()
  return vim.fn.bufwinid(self.transcript.buf) ~= -1
end

--- Show the chat and go to the prompt.
function Chat:open()
  editor.remember(vim.api.nvim_get_current_buf())
  local window = config.options.window
  local win = vim.fn.bufwinid(self.transcript.buf)
  if win == -1 then
    if window.position == "tab" then
      vim.cmd("tab split")
    else
      vim.cmd(SPLITS[window.position])
      local size = window.size
      if window.position == "right" or window.position == "left" then
        local share = math.max(math.floor(vim.o.columns * size), math.min(LEAST_COLUMNS, vim.o.columns - LEAST_COLUMNS))
        vim.api.nvim_win_set_width(0, size <= 1 and share or size)
      else
        vim.api.nvim_win_set_height(0, size <= 1 and math.floor(vim.o.lines * size) or size)
      end
    end
    win = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(win, self.transcript.buf)
    vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(self.transcript.buf), 0 })
  end
  local input = vim.fn.bufwinid(self.input)
  if input == -1 then
    input = vim.api.nvim_open_win(self.input, true, { win = win, split = "below", height = window.input_height })
    vim.api.nvim_win_set_height(input, window.input_height)
    local options =
      { winfixheight = true, statusline = "%=", number = false, relativenumber = false, wrap = true, linebreak = true, signcolumn = "no" }
    for name, value in pairs(options) do
      vim.wo[input][0][name] = value
    end
    vim.wo[input][0].fillchars = "eob: "
  end
  vim.api.nvim_set_current_win(input)
  self:show_state()
end

--- Close the windows; the session continues.
function Chat:close()
  for _, buf in ipairs({ self.input, self.transcript.buf }) do
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      -- The last window of Neovim cannot be closed.
      pcall(vim.api.nvim_win_close, win, true)
    end
  end
end

--- Return the key of an action in the current mode.
local function key_of(action)
  local keys = config.options.keymaps[action] or {}
  return keys[vim.fn.mode():sub(1, 1)] or keys.n or keys.i
end

--- Return the state of the chat in a few words.
---@return string
function Chat:status()
  local asking = self.session.asking or 0
  if asking > 0 then
    return vim.fn.mode():sub(1, 1) == "n" and "waiting for your answer" or "question pending, leave insert mode"
  elseif self.session.state == "starting" then
    return "starting"
  elseif self.session.state == "running" then
    local tool = select(2, next(self.transcript.tools))
    return tool and "running " .. tool.title:match("^%S+") or "working"
  end
  return self.session.unreachable and "not connected" or "ready"
end

--- Update the bars above both windows: model, mode and context; state and keys.
function Chat:show_state()
  if self.state_is_due then
    return
  end
  -- Updated once for all changes in an iteration of the main loop.
  self.state_is_due = true
  vim.schedule(function()
    self.state_is_due = false
    self:show_state_now()
  end)
end

local function shortened(text, width)
  text = vim.trim(text):gsub("%s+", " ")
  return vim.fn.strchars(text) > width and vim.fn.strcharpart(text, 0, width - 1) .. "…" or text
end

--- Return the first words of the chat, which distinguish it from others.
function Chat:name()
  return shortened(self.prompts[1] or "another chat", 30)
end

local function escaped(text)
  return (text:gsub("%%", "%%%%"))
end

--- Return a bar with `left` and `right` texts; `right` is left out if there is no room.
local function bar(win, mark, left, right)
  local marked = vim.api.nvim_eval_statusline(mark, {}).width
  local room = vim.api.nvim_win_get_width(win) - marked
  if vim.api.nvim_strwidth(left) + vim.api.nvim_strwidth(right) + 1 > room then
    left, right = shortened(left, math.max(room, 1)), ""
  end
  return mark .. escaped(left) .. "%=%#JumpseatHint#" .. escaped(right)
end

function Chat:show_state_now()
  local model = self.session.model_shown or self.session.model or config.options.model
  local title = "jumpseat" .. (model and " · " .. model or "")
  local mode = self.session.mode
  if mode and mode ~= "interactive" then
    title = title .. " · " .. mode
  end
  local full = ""
  if self.session.token_limit and self.session.token_limit > 0 then
    full = ("%d%% full "):format(math.floor(100 * self.session.tokens / self.session.token_limit + 0.5))
  end
  local status, hint = self:status(), ""
  if self.session.state == "idle" then
    local key = key_of("send")
    hint = key and key .. ": send " or ""
  elseif (self.session.asking or 0) == 0 then
    local key = key_of("stop")
    hint = key and key .. ": stop " or ""
  end
  local busy = self.session.state ~= "idle"
  local names = {}
  for _, one in ipairs(self.attachments) do
    names[#names + 1] = one.displayName
  end
  local with = #names > 0 and " · with " .. table.concat(names, ", ") or ""
  local waiting = self.session.queue
  if #waiting > 0 and self.session.state == "running" then
    local more = #waiting > 1 and (" +%d"):format(#waiting - 1) or ""
    with = " · next: " .. shortened(waiting[1].prompt, 24) .. more .. with
  end
  for _, win in ipairs(vim.fn.win_findbuf(self.transcript.buf)) do
    vim.wo[win][0].winbar = bar(win, "%#JumpseatTitle# ", title, full)
  end
  local mark = busy and "%#JumpseatBusy# ● " or "%#JumpseatReady# › "
  for _, win in ipairs(vim.fn.win_findbuf(self.input)) do
    vim.wo[win][0].winbar = bar(win, mark, status .. with, hint)
  end
end

-- Keys -------------------------------------------------------------------------------------------------------------

function Chat:map_keys()
  local function goto_section(flags)
    vim.fn.search("^## ", flags)
  end
  local both, prompt, text = { self.input, self.transcript.buf }, { self.input }, { self.transcript.buf }
  local actions = {
    send = {
      prompt,
      "Send the prompt",
      function()
        self:send_draft()
      end,
    },
    steer = {
      prompt,
      "Add the prompt to the running turn",
      function()
        self:send_draft(true)
      end,
    },
    stop = { both, "Stop the turn", self.stop },
    close = { both, "Close the chat", self.close },
    model = {
      both,
      "Choose a model",
      function()
        require("jumpseat.models").pick(self.session)
      end,
    },
    previous_prompt = {
      prompt,
      "Recall the previous prompt",
      function()
        self:recall(-1)
      end,
    },
    next_prompt = {
      prompt,
      "Recall the next prompt",
      function()
        self:recall(1)
      end,
    },
    previous_section = {
      text,
      "Go to the previous message",
      function()
        goto_section("bW")
      end,
    },
    next_section = {
      text,
      "Go to the next message",
      function()
        goto_section("W")
      end,
    },
    toggle_details = {
      text,
      "Show or hide the details of a tool call",
      function()
        vim.cmd("silent! normal! za")
      end,
    },
  }
  for action, keys in pairs(config.options.keymaps) do
    local buffers, description, run = unpack(actions[action])
    for mode, key in pairs(keys or {}) do
      for _, buf in ipairs(buffers) do
        vim.keymap.set(mode, key, function()
          run(self)
        end, { buffer = buf, desc = "jumpseat: " .. description, nowait = true })
      end
    end
  end
  -- Keys that start insert mode in the transcript go to the prompt.
  for _, key in ipairs({ "i", "a", "o", "I", "A", "O" }) do
    vim.keymap.set("n", key, function()
      self:open()
      vim.cmd.startinsert({ bang = true })
    end, { buffer = self.transcript.buf, desc = "jumpseat: Write a prompt" })
  end
end

return M
