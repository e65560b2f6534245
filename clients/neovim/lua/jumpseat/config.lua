--- Options and their defaults.

local M = {}

---@class jumpseat.Config
M.defaults = {
  --- The server's command and leading arguments; `--headless --stdio` are added.
  cmd = { "jumpseat" },
  --- Environment variables of the server, in addition to Neovim's.
  env = {},
  --- Name of the model; nil: the server's default.
  model = nil,
  --- The provider as in the protocol: {type=, baseUrl=, apiKey=, ...}; nil: as configured for the server.
  provider = nil,
  --- Further parameters of `session.create`, as in the protocol.
  session = {},
  --- Your own tools by name; `false` removes a built-in one.
  tools = {},
  window = {
    position = "right", -- "left", "top", "bottom", "tab"
    size = 0.45, -- of the editor's width or height
    input_height = 6,
  },
  --- `false` instead of keys removes the mapping of an action.
  keymaps = {
    send = { n = "<CR>", i = "<C-s>" },
    steer = { n = "g<CR>", i = "<M-CR>" },
    stop = { n = "<C-c>" },
    close = { n = "q" },
    model = { n = "gm" },
    previous_prompt = { n = "<C-Up>", i = "<C-Up>" },
    next_prompt = { n = "<C-Down>", i = "<C-Down>" },
    previous_section = { n = "[[" },
    next_section = { n = "]]" },
    toggle_details = { n = "<Tab>" },
  },
}

---@type jumpseat.Config
M.options = vim.deepcopy(M.defaults)

-- Options whose content is not validated here.
local FREE = { env = true, provider = true, session = true, tools = true, cmd = true }
local POSITIONS = { right = true, left = true, top = true, bottom = true, tab = true }

local function fail(...)
  error("jumpseat: " .. string.format(...), 0)
end

local TYPES = { model = "string", provider = "table" }

local function merge(base, given, path)
  for name, value in pairs(given) do
    local where = path .. name
    local wanted = base[name] ~= nil and type(base[name]) or (path == "" and TYPES[name]) or nil
    if path:find("^keymaps%.%w") then
      wanted = nil
      if not vim.tbl_contains({ "n", "i", "v", "x" }, name) then
        fail("%s: expected one of the modes n, i, v, x", where)
      end
      if type(value) ~= "string" then
        fail("%s: expected keys as a string", where)
      end
    elseif wanted == nil then
      fail("unknown option %q", where)
    elseif path == "keymaps." and value == false then
      wanted = nil
    elseif where == "cmd" and type(value) == "string" then
      value = { value }
    end
    if wanted and type(value) ~= wanted then
      fail("%s: expected a %s, got a %s", where, wanted, type(value))
    end
    if type(value) == "table" and type(base[name]) == "table" and not FREE[name] and path ~= "keymaps." then
      merge(base[name], value, where .. ".")
    elseif path == "keymaps." and type(value) == "table" then
      base[name] = {}
      merge(base[name], value, where .. ".")
    else
      base[name] = vim.deepcopy(value)
    end
  end
end

--- Set the user's options, with `defaults` for the rest. Raises an error message if an option is invalid.
---@param given? table
function M.set(given)
  local options = vim.deepcopy(M.defaults)
  merge(options, given or {}, "")
  if not POSITIONS[options.window.position] then
    fail("window.position: expected right, left, top, bottom or tab, got %q", options.window.position)
  end
  if #options.cmd == 0 then
    fail("cmd: expected the command of the server, got an empty list")
  end
  M.options = options
end

--- Return the complete command of the server.
---@return string[]
function M.command()
  local cmd = vim.deepcopy(M.options.cmd)
  -- No shell is involved that would expand it.
  cmd[1] = cmd[1]:find("^~") and vim.fs.normalize(cmd[1]) or cmd[1]
  return vim.list_extend(cmd, { "--headless", "--stdio" })
end

return M
