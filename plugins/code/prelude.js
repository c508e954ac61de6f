// The JavaScript side of the plugin code. The engine evaluates this file once, before the first call, and calls the
// function with the host's functions; they and the functions returned stay out of reach of programs. Programs may change
// every global object, so only what is saved here is used later.
(host => {
  'use strict'
  const { start, list, evaluate, respond } = host
  const uncurry = Function.prototype.bind.bind(Function.prototype.call)
  const { parse, stringify } = JSON
  const { keys, freeze, defineProperty, hasOwn } = Object
  const { isArray } = Array
  const join = uncurry(Array.prototype.join)
  const [cut, indexOf, trim, startsWith, endsWith] = ['slice', 'indexOf', 'trim', 'startsWith', 'endsWith'].map(name => uncurry(String.prototype[name]))
  const [get, set, remove] = ['get', 'set', 'delete'].map(name => uncurry(Map.prototype[name]))
  const then = uncurry(Promise.prototype.then)
  const { Promise: SavedPromise, Proxy: SavedProxy, Error: SavedError, TypeError: SavedTypeError, SyntaxError: SavedSyntaxError } = globalThis
  const text = String

  const maxConsole = 4096 // characters
  const maxKey = 40 // characters of a key in the shape of a value
  const maxName = 128 // characters of a tool's name in a list of calls
  let limit = 32768 // characters of a result, and of the message of an error

  // The methods of arrays would call setters and constructors that programs may put on the prototype.
  const push = (list, value) => defineProperty(list, list.length, { __proto__: null, value, writable: true, enumerable: true, configurable: true })
  const map = (list, change) => {
    const changed = []
    for (let i = 0; i < list.length; i++) push(changed, change(list[i]))
    return changed
  }
  const filter = (list, wanted) => {
    const left = []
    for (let i = 0; i < list.length; i++) if (wanted(list[i], i)) push(left, list[i])
    return left
  }
  const clip = (value, most) => value.length > most ? `${cut(value, 0, most)}…` : value

  // Stack frames would give access to the functions of this file.
  defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: false, configurable: false })

  // Console output is returned with the result.
  const lines = []
  let written = 0
  const show = value => {
    if (typeof value === 'string') return value
    if (value instanceof SavedError) return `${value.name}: ${value.message}`
    try {
      return stringify(value) ?? text(value)
    } catch {
      return text(value)
    }
  }
  const print = (...values) => {
    if (written > maxConsole) return
    const line = join(map(values, show), ' ')
    if ((written += line.length + 1) > maxConsole) push(lines, `${cut(line, 0, maxConsole - written + line.length + 1)}… (more is dropped: return what you need)`)
    else push(lines, line)
  }
  globalThis.console = { log: print, info: print, warn: print, error: print, debug: print }

  class ToolError extends Error {
    constructor(tool, code, message) {
      super(message)
      this.name = 'ToolError'
      this.tool = tool
      this.code = code
    }
  }
  globalThis.ToolError = ToolError

  const calls = [] // all calls so far
  const open = new Map() // those that run, by handle

  const invoke = (name, args = {}) => new SavedPromise((resolve, reject) => {
    if (args === null || typeof args !== 'object' || isArray(args)) throw new SavedTypeError(`tools.${name} takes one object with its arguments`)
    const call = { name, state: 'running', resolve, reject }
    const started = start(stringify({ __proto__: null, name, arguments: args }))
    if (typeof started === 'string') {
      const { code, message } = parse(started)
      throw new ToolError(name, code, message)
    }
    push(calls, call)
    set(open, started, call)
  })
  globalThis.tools = freeze(new SavedProxy(freeze({}), {
    get: (_, name) => typeof name === 'string' && name !== 'then' && name !== 'toJSON' ? args => invoke(name, args) : undefined,
  }))

  // own is a property that is the object's and not of a prototype, which programs may change.
  const own = (object, name) => hasOwn(object, name) ? object[name] : undefined

  // hint is the declarations of tools whose names are similar.
  const hint = name => {
    try {
      const similar = declared(name, 3)
      return similar && `\n\nTools that there are:\n${similar}`
    } catch {
      return '' // the error says what is wrong without them
    }
  }

  // settle takes the end of a call.
  const settle = json => {
    const end = parse(json)
    const call = get(open, own(end, 'handle'))
    if (!call) return
    remove(open, own(end, 'handle'))
    const error = own(end, 'error')
    if (error) {
      const { code, message } = error
      call.state = code
      call.reject(new ToolError(call.name, code, code === 'not-found' ? message + hint(call.name) : message))
    } else {
      call.state = 'ok'
      call.resolve(valueOf(end))
    }
  }

  // valueOf is the structured content, else the JSON in the text, else the text, else the content blocks.
  const valueOf = end => {
    const structuredContent = own(end, 'structuredContent'), content = own(end, 'content') ?? []
    if (structuredContent !== undefined) return structuredContent
    const texts = map(filter(content, block => block.type === 'text'), block => block.text ?? '')
    if (texts.length === 0) return content
    const whole = join(texts, '\n')
    const first = trim(whole)[0]
    if (first === '{' || first === '[') {
      try {
        return parse(whole)
      } catch {} // it is no JSON
    }
    return whole
  }

  let answered = false
  const answer = (body, isError) => {
    if (answered) return
    const content = [] // encoded: only strings are safe from toJSON, and from setters of the program's that stringify calls
    const add = part => push(content, `{"type":"text","text":${stringify(part)}}`)
    add(body)
    const left = map(filter(calls, call => call.state === 'running'), call => clip(call.name, maxName))
    if (left.length > 0) add(`The program ended before these calls, which were canceled: ${join(left, ', ')}. Wait for every call with await.`)
    if (lines.length > 0) add(`Console output:\n${join(lines, '\n')}`)
    respond(`{"content":[${join(content, ',')}],"isError":${isError}}`)
    answered = true
  }

  // without are the codes of calls that had no effect.
  const without = { __proto__: null, 'not-found': true, denied: true, invalid: true, 'not-granted': true, busy: true }

  const fail = error => {
    let what = 'the program threw what cannot be shown'
    try {
      const known = error instanceof SavedError
      const whole = error === null ? 'the program threw null, or had no memory left for an error' : known ? `${error.name}: ${error.message}` : text(error)
      what = `${clip(whole, limit)}${whole.length > limit ? ` (${whole.length} characters)` : ''}${known ? place(error) : ''}`
    } catch {} // a getter of the program's throws
    const made = map(filter(calls, call => call.state !== 'running' && !without[call.state]), call => `${clip(call.name, maxName)}: ${call.state}`)
    answer(made.length === 0 ? what : `${what}\n\nCalls that the program made before, whose effects remain:\n${join(made, '\n')}`, true)
  }

  // place is the line of the program in an error's stack.
  const place = ({ stack = '' }) => {
    const at = indexOf(text(stack), 'program:')
    const line = at < 0 ? 0 : parseInt(cut(text(stack), at + 8))
    return line > 0 ? ` (line ${line})` : ''
  }
  const parseInt = globalThis.parseInt

  const succeed = value => {
    const body = typeof value === 'string' ? value : value === undefined
      ? 'The program returned nothing: put return before its last value.' : stringify(value, (_, v) => typeof v === 'bigint' ? text(v) : v) ?? text(value)
    if (body.length > limit) {
      answer(`The result has ${body.length} characters and may have ${limit}: return less of it. It is ${clip(shape(value, 0), limit)}.`, true)
    } else {
      answer(body, false)
    }
  }

  // shape describes a value in words.
  const shape = (value, depth) => {
    if (value === null || typeof value !== 'object') return typeof value === 'string' ? `a string of ${value.length} characters` : typeof value
    if (isArray(value)) return `a list of ${value.length}${value.length > 0 && depth < 3 ? `, the first is ${shape(value[0], depth + 1)}` : ''}`
    const names = keys(value)
    const more = names.length > 20 ? ` and ${names.length - 20} more` : ''
    const member = name => `${clip(name, maxKey)}${depth < 3 ? ` (${shape(value[name], depth + 1)})` : ''}`
    return `an object with ${join(map(filter(names, (_, i) => i < 20), member), ', ')}${more}`
  }

  // source is the program without the fence of a code block.
  const source = code => {
    const trimmed = trim(code)
    if (!startsWith(trimmed, '```') || !endsWith(trimmed, '```') || trimmed.length < 6) return code
    const end = indexOf(trimmed, '\n')
    return end < 0 ? cut(trimmed, 3, -3) : cut(trimmed, end + 1, -3)
  }

  // compile makes a function of a program, which is an expression, the body of a function, or a function itself. The
  // program starts in the first line, so that lines in errors are its own.
  const compile = code => {
    try {
      return evaluate(`(async () => { return (${code}\n) })`)
    } catch {
      return evaluate(`(async () => { ${code}\n})`)
    }
  }

  const run = ({ code }, config) => {
    limit = config?.max_result ?? limit
    let program
    try {
      program = compile(source(code))
    } catch (error) {
      fail(error)
      return
    }
    then(then(program(), value => typeof value === 'function' ? value() : value), value => {
      try {
        succeed(value)
      } catch (error) { // it cannot be encoded
        fail(error)
      }
    }, fail)
  }

  const search = (query, limit) => {
    const found = parse(list(stringify({ __proto__: null, query, limit })))
    const error = own(found, 'error')
    if (error) throw new ToolError('find_tools', error.code, error.message)
    return found
  }

  // declared are the TypeScript declarations of the tools that match a query.
  const declared = (query, limit) => join(map(search(cut(query, 0, 1000), limit).tools, tool => tool.declaration), '\n\n')

  const find = ({ query, limit = 8 }) => {
    const found = search(query, limit)
    if (found.total === 0) return answer('No tool matches. Try other words, or none for the list of all tools.', false)
    answer(`${found.tools.length} of ${found.total} tools:\n\n${join(map(found.tools, tool => tool.declaration), '\n\n')}`, false)
  }

  // serve takes a request. It answers now or when the program has ended.
  const serve = json => {
    const request = parse(json)
    try {
      if (request.name === 'find_tools') find(request.arguments)
      else run(request.arguments, request.config)
    } catch (error) {
      fail(error)
    }
  }

  // end answers for a program that waits for what never comes.
  const end = () => fail(new SavedError('the program waits for a promise that nothing settles'))

  return { serve, settle, end, fail }
})
