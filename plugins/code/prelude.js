// The JavaScript side of the plugin code. The engine evaluates this file once, before the first call, and calls the
// function with the host's functions; they and the functions returned stay out of reach of programs. Programs may change
// every global object, so only what is saved here is used later.
(host => {
  'use strict'
  const { start, list, evaluate, respond, push } = host
  const uncurry = Function.prototype.bind.bind(Function.prototype.call)
  const { parse, stringify } = JSON
  const { keys, freeze, defineProperty, setPrototypeOf } = Object
  const { isArray } = Array
  const join = uncurry(Array.prototype.join)
  const [cut, indexOf, lastIndexOf, trim, trimEnd, startsWith, endsWith] = ['slice', 'indexOf', 'lastIndexOf', 'trim', 'trimEnd', 'startsWith', 'endsWith'].map(name => uncurry(String.prototype[name]))
  const [get, set, remove, eachEntry] = ['get', 'set', 'delete', 'forEach'].map(name => uncurry(Map.prototype[name]))
  const eachMember = uncurry(Set.prototype.forEach)
  const then = uncurry(Promise.prototype.then)
  const { Promise: SavedPromise, Proxy: SavedProxy, Map: SavedMap, Set: SavedSet, parseInt } = globalThis
  const { Error: SavedError, TypeError: SavedTypeError, ReferenceError: SavedReferenceError, SyntaxError: SavedSyntaxError } = globalThis
  const text = String

  const maxConsole = 4096 // characters
  const maxKey = 40 // characters of a key in the shape of a value
  const maxName = 128 // characters of a tool's name in a list of calls
  const maxLine = 100 // characters of the line of an error
  let limit = 32768 // characters of a result, and of the message of an error

  // The methods of arrays would call setters and constructors that programs may put on the prototype.
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

  // plain returns a replacer of values that JSON has not, or of which it would leave nothing. What has itself becomes one
  // value that has itself, which is an error.
  const plain = () => {
    const made = new SavedMap()
    return (_, value) => {
      if (typeof value === 'bigint') return text(value)
      if (value === null || typeof value !== 'object') return value
      if (value instanceof SavedPromise) return '(a promise: put await before it)'
      const isError = value instanceof SavedError, isMap = value instanceof SavedMap
      if (!isError && !isMap && !(value instanceof SavedSet)) return value
      const known = get(made, value)
      if (known) return known
      const plain = isError ? { name: value.name, message: value.message, ...value } : []
      set(made, value, plain)
      if (isMap) eachEntry(value, (member, key) => push(plain, [key, member]))
      else if (!isError) eachMember(value, member => push(plain, member))
      return plain
    }
  }

  // Stack frames would give access to the functions of this file.
  defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: false, configurable: false })

  // Console output is returned with the result.
  const lines = []
  let written = 0
  const show = value => {
    if (typeof value === 'string') return value
    if (value instanceof SavedError) return `${value.name}: ${value.message}`
    try {
      return stringify(value, plain()) ?? text(value)
    } catch (error) {
      return `(cannot be shown: ${text(error?.message ?? error)})`
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

  const usage = 'tools are called as tools.NAME({...}), with the names and arguments that find_tools shows'

  // invoke calls a tool, whose name is also given as JSON. The stack is that of the call.
  const invoke = (name, json, args, stack) => new SavedPromise((resolve, reject) => {
    if (args === null || typeof args !== 'object' || isArray(args)) throw new SavedTypeError(`tools.${name} takes one object with its arguments: ${usage}`)
    const started = start(`{"name":${json},"arguments":${stringify(args) ?? '{}'}}`)
    if (typeof started === 'string') {
      const { code, message } = parse(started)
      throw new ToolError(name, code, message)
    }
    const call = { name, state: 'running', resolve, reject, stack }
    push(calls, call)
    set(open, started, call)
  })

  // Neither a tool nor the object tools has members that JavaScript would look for on its own.
  const implicit = { __proto__: null, then: true, toJSON: true, toString: true, valueOf: true }
  const toolOf = name => {
    const json = stringify(name)
    return new SavedProxy((args = {}) => invoke(name, json, args, new SavedError().stack), {
      get(target, key) {
        if (typeof key === 'string' && !(key in target) && !implicit[key]) throw new SavedTypeError(`there is no tools.${clip(name, maxName)}.${clip(key, maxName)}: ${usage}`)
        return target[key]
      },
    })
  }
  const unlisted = () => {
    throw new SavedTypeError(`a program cannot list tools: ${usage}`)
  }
  const known = new Map() // the tools that the program has named
  const tools = new SavedProxy(freeze({}), {
    get(_, name) {
      if (typeof name !== 'string' || implicit[name]) return undefined
      const tool = get(known, name) ?? toolOf(name)
      set(known, name, tool)
      return tool
    },
    has: unlisted,
    ownKeys: unlisted,
  })
  globalThis.tools = tools

  // bare parses the JSON of an object, which then has nothing of a prototype, which programs may change.
  const bare = json => setPrototypeOf(parse(json), null)

  // hint is the declarations of tools whose names are similar, or how to find tools.
  const hint = name => {
    try {
      const similar = declared(name, 3)
      return similar ? `\n\nTools that there are:\n${similar}` : `: ${usage}`
    } catch {
      return '' // the error says what is wrong without them
    }
  }

  // settle takes the end of a call.
  const settle = json => {
    const { handle, error, structuredContent, content } = bare(json)
    const call = get(open, handle)
    if (!call) return
    remove(open, handle)
    if (error) {
      const { code, message } = error
      const failure = new ToolError(call.name, code, code === 'not-found' ? message + hint(call.name) : message)
      defineProperty(failure, 'stack', { __proto__: null, value: call.stack, writable: true, configurable: true })
      call.state = code
      call.reject(failure)
    } else {
      call.state = 'ok'
      call.resolve(structuredContent === undefined ? valueOf(content ?? []) : structuredContent)
    }
  }

  // valueOf is the JSON in the text of content blocks, else the text, else the blocks.
  const valueOf = content => {
    const texts = map(filter(content, block => block.type === 'text'), block => block.text ?? '')
    if (texts.length === 0) return content
    const whole = texts.length === 1 ? texts[0] : join(texts, '\n')
    const first = trim(whole)[0]
    if (first === '{' || first === '[') {
      try {
        return parse(whole)
      } catch {} // it is no JSON
    }
    return whole
  }

  // tally is the labels of calls, each once, with the number of calls.
  const tally = (calls, label) => {
    const counts = new SavedMap(), labels = []
    map(calls, call => {
      const name = label(call), n = get(counts, name) ?? 0
      if (n === 0) push(labels, name)
      set(counts, name, n + 1)
    })
    return map(labels, name => get(counts, name) > 1 ? `${name} (${get(counts, name)} times)` : name)
  }

  let answered = false
  const answer = (body, isError) => {
    if (answered) return
    const content = [] // encoded: only strings are safe from toJSON, and from setters of the program's that stringify calls
    const add = part => push(content, `{"type":"text","text":${stringify(part)}}`)
    add(body)
    const left = tally(filter(calls, call => call.state === 'running'), call => clip(call.name, maxName))
    if (left.length > 0) add(`The program ended before these calls, which were canceled: ${join(left, ', ')}. Wait for each: await tools.NAME({...}), or await Promise.all([...]) for several.`)
    if (lines.length > 0) add(`Console output:\n${join(lines, '\n')}`)
    respond(`{"content":[${join(content, ',')}],"isError":${isError}}`)
    answered = true
  }

  // without are the codes of calls that had no effect.
  const without = { __proto__: null, 'not-found': true, denied: true, invalid: true, 'not-granted': true, busy: true }

  // refuse answers with an error, and with the calls that the program has made.
  const refuse = what => {
    const made = tally(filter(calls, call => call.state !== 'running' && !without[call.state]), call => `${clip(call.name, maxName)}: ${call.state}`)
    answer(made.length === 0 ? what : `${what}\n\nCalls that the program made before, whose effects remain:\n${join(made, '\n')}`, true)
  }

  const fail = (error, advice = '') => {
    let what = 'the program threw what cannot be shown'
    try {
      const known = error instanceof SavedError
      const whole = error === null ? 'the program threw null, or had no memory left for an error' : known ? `${error.name}: ${error.message}` : show(error)
      if (error instanceof SavedReferenceError) advice = `\nThere are JavaScript's own objects, tools and console; no modules, files, network or timers. And ${usage}.`
      what = `${clip(whole, limit)}${whole.length > limit ? ` (${whole.length} characters)` : ''}${known ? place(error) : ''}${advice}`
    } catch {} // a getter of the program's throws
    refuse(what)
  }

  // place is the line of the program in an error's stack.
  const place = ({ stack = '' }) => {
    const frames = text(stack), at = indexOf(frames, 'program:')
    const line = at < 0 ? 0 : parseInt(cut(frames, at + 8)), column = parseInt(cut(frames, indexOf(frames, ':', at + 8) + 1))
    if (!(line > 0)) return ''
    let start = 0
    for (let i = 1; i < line; i++) {
      start = indexOf(program, '\n', start) + 1
      if (start === 0) return ` (line ${line})`
    }
    const end = indexOf(program, '\n', start)
    let code = trim(cut(program, start, end < 0 ? program.length : end))
    if (code.length > maxLine) { // the part that begins a bit before the error
      const from = column - (line === 1 ? shift : 0) - maxLine / 4
      code = clip(from > 0 ? `…${cut(program, start + from, end < 0 ? program.length : end)}` : code, maxLine)
    }
    return ` (line ${line}: ${code})`
  }

  const succeed = value => {
    const body = typeof value === 'string' ? value : value === undefined
      ? 'The program returned nothing: put return before its last value.' : stringify(value, plain()) ?? text(value)
    if (body.length > limit) {
      refuse(`The result has ${body.length} characters and may have ${limit}: return less of it. It is ${clip(shape(value, 0), limit)}.`)
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

  let program = '' // as it was compiled last
  let shift = 0 // characters that are before it in its first line

  const enclose = (before, code, after) => {
    program = code
    shift = before.length
    return evaluate(`${before}${code}\n${after}`)
  }

  // compile makes a function of a program, which is an expression, the body of a function, or a function itself. The
  // program starts in the first line, so that lines in errors are its own.
  const compile = code => {
    try {
      const ended = trimEnd(code)
      return enclose('(async () => { return (', endsWith(ended, ';') ? cut(ended, 0, -1) : code, ') })')
    } catch {
      return enclose('(async () => { ', code, '})')
    }
  }

  // fenced is what the only code block of a text contains. It is undefined without one.
  const fenced = text => {
    const first = indexOf(text, '```'), last = lastIndexOf(text, '```')
    if (last < first + 3) return undefined
    const line = indexOf(text, '\n', first)
    const block = line < 0 || line > last ? cut(text, first + 3, last) : cut(text, line + 1, last)
    return indexOf(block, '\n```') < 0 ? block : undefined
  }

  // read compiles the code that a model sends: a program, or a text with one in a code block.
  const read = code => {
    const block = fenced(code)
    if (startsWith(trim(code), '```')) {
      if (block === undefined) throw new SavedSyntaxError('there are several code blocks, or one without an end: send one program')
      return compile(block)
    }
    try {
      return compile(code)
    } catch (error) {
      if (block === undefined) throw error
      return compile(block)
    }
  }

  const run = ({ code }, config) => {
    limit = config?.max_result ?? limit
    let started
    try {
      started = read(code)
    } catch (error) {
      fail(error, error instanceof SavedSyntaxError ? "\nThe code must be plain JavaScript: no types of TypeScript, no import or export, and await only in async functions." : '')
      return
    }
    then(then(started(), value => typeof value === 'function' ? value(tools) : value), value => {
      try {
        succeed(value)
      } catch (error) { // it cannot be encoded
        fail(error)
      }
    }, fail)
  }

  const search = (query, limit) => {
    const found = bare(list(stringify({ __proto__: null, query, limit })))
    if (found.error) throw new ToolError('find_tools', found.error.code, found.error.message)
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
