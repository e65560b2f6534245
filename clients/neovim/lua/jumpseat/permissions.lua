--- Permission requests: how they are described to the user, and the possible answers.
--- The session sends the decisions.

local questions = require("jumpseat.questions")

local M = {}

local one_line = questions.one_line

-- Descriptions -----------------------------------------------------------------------------------------------------

local function split(text)
  return vim.split((text:gsub("\n$", "")), "\n", { plain = true })
end

--- Return the lines that name the real target of a path with links or `..`, if it has one.
local function target(request)
  return request.resolvedPath and { "# leads to " .. one_line(request.resolvedPath) } or {}
end

--- Return the line with the warning of the server, which names characters that hide or imitate something.
local function warning(request)
  return request.warning and { "# " .. one_line(request.warning) } or {}
end

local function relative(path)
  return vim.fn.fnamemodify(path or "?", ":~:.")
end

local function arguments(value)
  if type(value) ~= "table" or next(value) == nil then
    return {}
  end
  local names = vim.tbl_keys(value)
  table.sort(names, function(a, b)
    return tostring(a) < tostring(b)
  end)
  local lines = {}
  for _, name in ipairs(names) do
    local text = value[name]
    for index, line in ipairs(split(type(text) == "string" and text or vim.json.encode(text))) do
      lines[#lines + 1] = (index == 1 and one_line(tostring(name)) .. ": " or "  ") .. line
    end
  end
  return lines
end

local KINDS = {
  shell = function(request)
    local lines = split(request.fullCommandText or "")
    local intention = one_line(request.intention or "")
    if intention ~= "" and intention ~= one_line(request.fullCommandText or "") then
      table.insert(lines, 1, "# " .. intention)
    end
    if request.warning then
      vim.list_extend(lines, { "", "# " .. one_line(request.warning) })
    end
    return "run this command?", lines, "sh"
  end,
  write = function(request)
    local lines = split(request.diff or "")
    -- The header of the diff repeats the file, with its full path. Later lines that look like it are changes.
    while lines[1] and (lines[1]:find("^%-%-%- ") or lines[1]:find("^%+%+%+ ")) do
      table.remove(lines, 1)
    end
    if request.warning then
      vim.list_extend(lines, { "", "# " .. one_line(request.warning) })
    end
    local what = (request.diff or ""):find("^%-%-%- /dev/null") and "create" or "change"
    return ("%s %s?"):format(what, relative(request.fileName)), vim.list_extend(target(request), lines), "diff"
  end,
  read = function(request)
    return ("read %s?"):format(relative(request.path)), vim.list_extend(warning(request), target(request)), ""
  end,
  url = function(request)
    local from = request.redirectedFrom and { "redirected from " .. one_line(request.redirectedFrom) } or {}
    return ("open %s?"):format(one_line(request.url or "?")), vim.list_extend(warning(request), from), ""
  end,
  memory = function(request)
    local lines = { one_line(request.fact or "") }
    -- Later sessions see all of these.
    for _, name in ipairs({ "subject", "citations", "reason", "direction", "scope", "repoNwo" }) do
      if request[name] then
        lines[#lines + 1] = ("# %s: %s"):format(name, one_line(request[name]))
      end
    end
    return ("%s a memory?"):format(request.action or "store"), vim.list_extend(warning(request), lines), ""
  end,
  mcp = function(request)
    local lines = arguments(request.args)
    if request.readOnly then
      table.insert(lines, 1, "# declared read-only by the server")
    end
    local title = ("call %s of the MCP server %s?"):format(request.toolName or "?", request.serverName or "?")
    return title, vim.list_extend(warning(request), lines), ""
  end,
  ["custom-tool"] = function(request)
    local lines = arguments(request.args)
    if request.toolDescription and request.toolDescription ~= "" then
      table.insert(lines, 1, "# " .. one_line(request.toolDescription))
    end
    return ("call %s?"):format(request.toolName or "?"), vim.list_extend(warning(request), lines), ""
  end,
  hook = function(request)
    local lines = arguments(request.toolArgs)
    if request.hookMessage then
      lines = vim.list_extend({ "# " .. one_line(request.hookMessage) }, lines)
    end
    local title = ("call %s (a hook requires your approval)?"):format(request.toolName or "?")
    return title, vim.list_extend(warning(request), lines), ""
  end,
}

--- Describe a permission request: a title, the lines of a preview, and their filetype.
---@param request table
---@return string title
---@return string[] lines
---@return string filetype
function M.describe(request)
  local kind = KINDS[request.kind]
  if kind then
    local title, lines, filetype = kind(request)
    return one_line(title), lines, filetype
  end
  return ("proceed with this request (%s)?"):format(tostring(request.kind)), split(vim.inspect(request)), "lua"
end

-- Answers ----------------------------------------------------------------------------------------------------------

local function host(url)
  return url and url:match("^%w+://([^/:?#]+)") or "?"
end

local SCOPES = {
  shell = function(request)
    local names = {}
    for _, one in ipairs(request.commands or {}) do
      if not vim.tbl_contains(names, one.identifier) then
        names[#names + 1] = one.identifier
      end
    end
    if request.alsoCovered then
      names[#names + 1] = "also " .. request.alsoCovered
    end
    return one_line(table.concat(names, ", "))
  end,
  write = function()
    return "all changes"
  end,
  read = function()
    return "all reads"
  end,
  url = function(request)
    return "all of " .. one_line(host(request.url))
  end,
  memory = function()
    return "all memories"
  end,
  mcp = function(request)
    return one_line(("%s of %s"):format(request.toolName or "?", request.serverName or "?"))
  end,
  ["custom-tool"] = function(request)
    return one_line(request.toolName or "")
  end,
}

--- Describe what an approval beyond this call covers; nil if none is offered.
---@param request table
---@return string?
function M.scope(request)
  local words = request.canOfferSessionApproval ~= false and SCOPES[request.kind]
  words = words and words(request) or ""
  return words ~= "" and words or nil
end

local ONCE, SESSION, PROJECT = "Allow once", "Allow for this session: ", "Always allow in this project: "
local EDIT, VIEW, REJECT, EXPLAIN = "Edit the command first", "View all of it", "Reject", "Reject and explain"
local CANCEL = "Cancel all calls of this answer"

--- Return whether the request is a command on one line, which can be edited.
local function can_be_edited(request, call)
  local command = request.kind == "shell" and call and call.command
  return type(command) == "string" and not command:find("%c")
end

---@param session table
---@param id string
---@param request table
---@param call table? arguments of the tool call, if known
---@param decide fun(decision: {kind: string, feedback: string?, modifiedArgs: table?})
function M.ask(session, id, request, call, decide)
  local question = { session = session, id = id }

  local function settle(decision)
    if questions.close(question) then
      decide(decision)
    end
  end

  function question.give_up()
    settle({ kind = "user-not-available" })
  end

  local title, lines, filetype = M.describe(request)
  title = session.prefix() .. "May the agent " .. title

  local select

  local answers = {
    [ONCE] = function()
      settle({ kind = "approve-once" })
    end,
    [SESSION] = function()
      settle({ kind = "approve-for-session" })
    end,
    [PROJECT] = function()
      settle({ kind = "approve-for-location" })
    end,
    [EDIT] = function()
      questions.input(question, { prompt = "Run: ", default = call.command }, function(text)
        if not text or vim.trim(text) == "" then
          return select()
        end
        local changed = vim.tbl_extend("force", call, { command = text })
        settle({ kind = "approve-once", modifiedArgs = changed })
      end)
    end,
    [EXPLAIN] = function()
      questions.input(question, { prompt = "What should it do instead? " }, function(text)
        local feedback = text and vim.trim(text) or ""
        settle({ kind = "reject", feedback = feedback ~= "" and feedback or nil })
      end)
    end,
    [CANCEL] = function()
      settle({ kind = "cancelled" })
    end,
    [VIEW] = function()
      question.preview:enter(function()
        if not question.closed then
          select()
        end
      end)
    end,
  }

  function select()
    local choices, scope = { ONCE }, M.scope(request)
    if scope then
      vim.list_extend(choices, { SESSION, PROJECT })
    end
    if can_be_edited(request, call) then
      choices[#choices + 1] = EDIT
    end
    vim.list_extend(choices, { REJECT, EXPLAIN, CANCEL })
    if question.preview and question.preview.hidden_rows > 0 then
      choices[#choices + 1] = VIEW
    end
    questions.select(question, choices, {
      prompt = title,
      kind = "jumpseat_permission",
      format_item = function(choice)
        return (choice == SESSION or choice == PROJECT) and choice .. scope or choice
      end,
    }, function(choice)
      local answer = answers[choice]
      if answer then
        answer()
      else
        settle({ kind = "reject" })
      end
    end)
  end

  function question.show()
    if #lines > 0 then
      question.preview = questions.preview(title, lines, filetype)
    end
    select()
  end

  questions.add(question)
end

return M
