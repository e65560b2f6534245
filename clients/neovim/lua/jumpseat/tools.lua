--- Tools that run in this Neovim: built-in ones, and those of `setup({tools = ...})`.
--- A tool is {description, parameters?, run, async?, ask?}; `run(args, ctx)` returns a string or a table for the
--- model, or nil and an error message for it. A raised error is shown to the user only, and never ends a session.

local config = require("jumpseat.config")
local editor = require("jumpseat.editor")

local M = {}

---@class jumpseat.Tool
---@field description string
---@field parameters? table JSON Schema of the arguments
---@field run fun(args: table, ctx: {session_id: string, cwd: string}, done: fun(result: any, problem: string?)?): any, string?
---@field async? boolean `run` gets `done` as a third argument and calls it with the result
---@field ask? boolean|fun(args: table, ctx: table): boolean whether to ask the user first; default: true

local path_parameter = {
  type = "string",
  description = "Path of the file, absolute or relative to the working directory",
}

---@type table<string, jumpseat.Tool>
local BUILTIN = {
  nvim_buffers = {
    description = "List the files open in the user's editor: their paths, unsaved changes, and which file the user"
      .. " is looking at, with the line of the cursor.",
    ask = false,
    run = editor.buffers,
  },
  nvim_read_buffer = {
    description = "Read a file that is open in the user's editor, with its unsaved changes. Default: the file that"
      .. " the user is looking at. Lines are numbered.",
    parameters = {
      type = "object",
      properties = {
        path = path_parameter,
        first_line = { type = "integer", minimum = 1 },
        last_line = { type = "integer", minimum = 1 },
      },
    },
    ask = editor.is_outside,
    run = editor.read_buffer,
  },
  nvim_diagnostics = {
    description = "List the errors and warnings that language servers and linters report in the user's editor, with"
      .. " their locations. Default: of all open files.",
    parameters = {
      type = "object",
      properties = {
        path = path_parameter,
        severity = {
          type = "string",
          enum = { "error", "warning", "info", "hint" },
          description = "Lowest severity to list",
        },
        wait_for = {
          type = "array",
          items = { type = "string" },
          description = "Paths of files that were just changed: wait up to a second for their problems",
        },
      },
    },
    ask = false,
    async = true,
    run = function(args, ctx, done)
      editor.when_checked(type(args.wait_for) == "table" and args.wait_for or {}, ctx.cwd, function()
        done(editor.diagnostics(args, ctx))
      end)
      -- What is waited for begins with the new text.
      M.reload_changed_buffers()
    end,
  },
  nvim_selection = {
    description = "Return the user's last selection in the editor, with its file and lines.",
    ask = false,
    run = editor.selection,
  },
  nvim_open = {
    description = "Open a file in the user's editor, with the cursor at a line and column.",
    parameters = {
      type = "object",
      properties = {
        path = path_parameter,
        line = { type = "integer", minimum = 1 },
        column = { type = "integer", minimum = 1 },
      },
      required = { "path" },
    },
    ask = editor.is_outside,
    run = editor.open,
  },
}

---@return table<string, jumpseat.Tool>
local function all()
  local tools = vim.tbl_extend("force", BUILTIN, config.options.tools)
  for name, tool in pairs(tools) do
    if tool == false then
      tools[name] = nil
    end
  end
  return tools
end

--- Complete a schema. An empty Lua table would be encoded as an array.
local function as_schema(parameters)
  parameters = vim.deepcopy(parameters or { type = "object" })
  if parameters.properties == nil or next(parameters.properties) == nil then
    parameters.properties = vim.empty_dict()
  end
  return parameters
end

--- Return the tools in the format of `session.create`.
---@return table[]
function M.declarations()
  local found = {}
  for name, tool in pairs(all()) do
    found[#found + 1] = {
      name = name,
      description = tool.description,
      parameters = as_schema(tool.parameters),
      skipPermission = tool.ask == false,
      overridesBuiltInTool = tool.overrides_builtin,
    }
  end
  table.sort(found, function(a, b)
    return a.name < b.name
  end)
  return found
end

--- Validate the user's tools. Raises an error message if one is invalid.
---@param tools table
function M.check(tools)
  for name, tool in pairs(tools) do
    local problem
    if type(name) ~= "string" or not name:find("^[%w_-]+$") then
      problem = "expected a name of letters, digits, _ and -"
    elseif tool == false then
      problem = nil
    elseif type(tool) ~= "table" or type(tool.run) ~= "function" or type(tool.description) ~= "string" then
      problem = "expected a table with a string `description` and a function `run`"
    end
    if problem then
      error(("jumpseat: tools.%s: %s"):format(tostring(name), problem), 0)
    end
  end
end

---@param name string
function M.has(name)
  return all()[name] ~= nil
end

--- Return whether a permission request is for a tool that runs without asking the user.
---@param request table
---@param ctx {session_id: string, cwd: string}
function M.runs_without_asking(request, ctx)
  local tool = request.kind == "custom-tool" and all()[request.toolName]
  if not tool then
    return false
  end
  if type(tool.ask) == "function" then
    local ok, ask = pcall(tool.ask, request.args or {}, ctx)
    return ok and ask == false
  end
  return tool.ask == false
end

--- Run a tool and call `answer` exactly once, with the fields of `handlePendingToolCall`.
---@param name string
---@param args table?
---@param ctx {session_id: string, cwd: string}
---@param answer fun(fields: table)
function M.run(name, args, ctx, answer)
  local tool = all()[name]
  local answered = false

  local function broken(problem)
    if not answered then
      answered = true
      vim.notify(("jumpseat: tool %s failed: %s"):format(name, problem), vim.log.levels.ERROR)
      answer({ error = name .. " failed in the editor" })
    end
  end

  local function done(result, problem)
    if answered then
      return
    end
    if result == nil and problem ~= nil then
      result = { textResultForLlm = tostring(problem), resultType = "failure" }
    elseif result == nil then
      result = "Done"
    end
    -- A result that cannot be encoded as JSON, such as a function, must fail here, where it can be answered.
    local ok, failure = pcall(vim.json.encode, result)
    if not ok then
      return broken(failure)
    end
    answered = true
    answer({ result = result })
  end

  local ok, result, problem = xpcall(tool.run, debug.traceback, type(args) == "table" and args or {}, ctx, done)
  if not ok then
    broken(result)
  elseif not tool.async then
    done(result, problem)
  end
end

--- Reload files that the agent has changed, unless their buffers have unsaved changes.
function M.reload_changed_buffers()
  if vim.fn.getcmdwintype() ~= "" then
    return
  end
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local bo = vim.bo[buf]
    if vim.api.nvim_buf_is_loaded(buf) and bo.buftype == "" and not bo.modified and vim.o.autoread then
      vim.cmd("silent! checktime " .. buf)
    end
  end
end

return M
