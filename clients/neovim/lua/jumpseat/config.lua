--- What the user may set, and what holds where nothing is said. Knows nothing of servers or windows.

local M = {}

---@class jumpseat.Config
M.defaults = {
  --- The server and leading arguments; `--headless --stdio` are added.
  cmd = { "jumpseat" },
  --- Laid over the environment of Neovim.
  env = {},
  --- Name of the model; the server's default where it is nil.
  model = nil,
  --- The provider in the words of the protocol: {type=, baseUrl=, apiKey=, ...}; nil: as the server is configured.
  provider = nil,
  --- Further parameters of `session.create`, in the words of the protocol.
  session = {},
  --- Tools of your own by name; `false` takes one of ours away.
  tools = {},
  window = {
    position = "right", -- "left", "top", "bottom", "tab"
    size = 0.45, -- of the editor's width or height
    input_height = 6,
  },
  --- `false` instead of keys leaves an action without a mapping.
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

-- Fields whose content is the user's own.
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
        fail("%s: a mapping is named by its mode: n, i, v or x", where)
      end
      if type(value) ~= "string" then
        fail("%s must be the keys, as a string", where)
      end
    elseif wanted == nil then
      fail("there is no option %q", where)
    elseif path == "keymaps." and value == false then
      wanted = nil
    elseif where == "cmd" and type(value) == "string" then
      value = { value }
    end
    if wanted and type(value) ~= wanted then
      fail("%s must be a %s, not a %s", where, wanted, type(value))
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

--- Take the user's options; whatever is not said is as in `defaults`. Raises a sentence where they make no sense.
---@param given? table
function M.set(given)
  local options = vim.deepcopy(M.defaults)
  merge(options, given or {}, "")
  if not POSITIONS[options.window.position] then
    fail("window.position must be right, left, top, bottom or tab, not %q", options.window.position)
  end
  if #options.cmd == 0 then
    fail("cmd must name the server")
  end
  M.options = options
end

--- The whole command of the server.
---@return string[]
function M.command()
  local cmd = vim.deepcopy(M.options.cmd)
  -- No shell is in between that would do it.
  cmd[1] = cmd[1]:find("^~") and vim.fs.normalize(cmd[1]) or cmd[1]
  return vim.list_extend(cmd, { "--headless", "--stdio" })
end

return M
