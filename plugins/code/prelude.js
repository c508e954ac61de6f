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
  const [push, join, map, filter] = ['push', 'join', 'map', 'filter'].map(name => uncurry(Array.prototype[name]))
  const [cut, indexOf, trim, startsWith, endsWith] = ['slice', 'indexOf', 'trim', 'startsWith', 'endsWith'].map(name => uncurry(String.prototype[name]))
  const [get, set, remove] = ['get', 'set', 'delete'].map(name => uncurry(Map.prototype[name]))
  const then = uncurry(Promise.prototype.then)
  const test = uncurry(RegExp.prototype.test)
  const { Promise: SavedPromise, Proxy: SavedProxy, Error: SavedError, TypeError: SavedTypeError, SyntaxError: SavedSyntaxError } = globalThis
  const text = String

  const maxConsole = 4096 // characters

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
    const started = start(stringify({ name, arguments: args }))
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
      const hint = code === 'not-found' ? declared(call.name, 3) : ''
      call.reject(new ToolError(call.name, code, message + (hint && `\n\nTools that there are:\n${hint}`)))
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
    if (test(/^\s*[[{]/, whole)) {
      try {
        return parse(whole)
      } catch {} // it is no JSON
    }
    return whole
  }

  let answered = false
  const answer = (body, isError) => {
    if (answered) return
    answered = true
    const content = [{ type: 'text', text: body }]
    const left = map(filter(calls, call => call.state === 'running'), call => call.name)
    if (left.length > 0) push(content, { type: 'text', text: `The program ended before these calls, which were canceled: ${join(left, ', ')}. Wait for every call with await.` })
    if (lines.length > 0) push(content, { type: 'text', text: `Console output:\n${join(lines, '\n')}` })
    respond(stringify(isError ? { content, isError } : { content }))
  }

  // without are the codes of calls that had no effect.
  const without = { __proto__: null, 'not-found': true, denied: true, invalid: true, 'not-granted': true, busy: true }

  const fail = error => {
    let what = 'the program threw what cannot be shown'
    try {
      what = error === null ? 'the program threw null, or had no memory left for an error' : text(error)
      if (error instanceof SavedError) what = `${error.name}: ${error.message}${place(error)}`
    } catch {} // a getter of the program's throws
    const made = map(filter(calls, call => call.state !== 'running' && !without[call.state]), call => `${call.name}: ${call.state}`)
    answer(made.length === 0 ? what : `${what}\n\nCalls that the program made before, whose effects remain:\n${join(made, '\n')}`, true)
  }

  // place is the line of the program in an error's stack.
  const place = ({ stack = '' }) => {
    const at = indexOf(text(stack), 'program:')
    const line = at < 0 ? 0 : parseInt(cut(text(stack), at + 8))
    return line > 0 ? ` (line ${line})` : ''
  }
  const parseInt = globalThis.parseInt

  const succeed = (value, limit) => {
    const body = typeof value === 'string' ? value : value === undefined
      ? 'The program returned nothing: end it with return, or with an expression.' : stringify(value, (_, v) => typeof v === 'bigint' ? text(v) : v) ?? text(value)
    if (body.length > limit) {
      answer(`The result has ${body.length} characters and may have ${limit}: return less of it. It is ${shape(value, 0)}.`, true)
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
    return `an object with ${join(map(filter(names, (_, i) => i < 20), name => depth < 3 ? `${name} (${shape(value[name], depth + 1)})` : name), ', ')}${more}`
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

  const run = ({ code }, { max_result: limit = 32768 } = {}) => {
    let program
    try {
      program = compile(source(code))
    } catch (error) {
      fail(error)
      return
    }
    then(then(program(), value => typeof value === 'function' ? value() : value), value => {
      try {
        succeed(value, limit)
      } catch (error) { // it cannot be encoded
        fail(error)
      }
    }, fail)
  }

  // declared are the TypeScript declarations of the tools that match a query.
  const declared = (query, limit) => {
    const found = parse(list(stringify({ query: cut(query, 0, 1000), limit })))
    if (found.error) throw new ToolError('find_tools', found.error.code, found.error.message)
    return join(map(found.tools, tool => tool.declaration), '\n\n')
  }

  const find = ({ query, limit = 8 }) => {
    const found = parse(list(stringify({ query, limit })))
    if (found.error) throw new ToolError('find_tools', found.error.code, found.error.message)
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

  return { serve, settle, end }
})
