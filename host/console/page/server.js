// What the page asks the server and hears from it: JSON over fetch, with the session's cookie, and one stream of events. All of it is data, to be shown as
// text.
import { language } from './language.js'

const base = new URL('api/', document.baseURI)
const names = ['call', 'started', 'dropped', 'approvals', 'plugins']
const longestWait = 5_000
const kept = 500
// A request that takes this long makes the page look whether the server still answers, in milliseconds.
const patience = 8_000
const probePatience = 5_000

/**
 * APIError is a refusal by the server. role names the role that the request would have needed, fields says what is wrong with which field of a form, body is
 * all that the server said.
 */
class APIError extends Error {
  constructor(status, body) {
    const { text, code, remedy, role, retryAfter, fields } = body.error ?? {}
    super(text ?? `HTTP ${status}`)
    Object.assign(this, { status, code, remedy, role, retryAfter, fields, body })
  }
}

/** OfflineError says that the server was not reached. */
export class OfflineError extends Error {}

/**
 * events tells what concerns the whole page: "offline" when the server cannot be reached, "hanging" when it can and does not answer, "online" when it
 * answers again, "retry" when the reader asks for another try, and "signedout" when the session has ended.
 */
export const events = new EventTarget()

let csrf = ''
let state = 'online'
// The requests that wait for an answer and can be sent again.
const waiting = new Set()

/** identify asks who is logged in. It has no parameters: the page asks for it before its scripts are there. */
export async function identify() {
  return remember(await request('GET', new URL('session', base)))
}

/** login begins a session with {token} or {link}. */
export async function login(proof) {
  return remember(await post('login', proof))
}

function remember(session) {
  csrf = session.csrf ?? ''
  return session
}

/** get asks for path. Parameters that are empty are left out. */
export function get(path, parameters = {}, signal) {
  return request('GET', address(path, parameters), undefined, signal)
}

/** post sends body as JSON. */
export function post(path, body = {}, signal) {
  return request('POST', address(path), body, signal)
}

/** upload sends a file, as it is. */
export function upload(path, file, parameters) {
  return request('POST', address(path, parameters), new Blob([file], { type: 'application/wasm' }))
}

/** pages asks for all pages of a list, as far as limit entries. */
export async function pages(path, parameters = {}, signal, limit = 1000) {
  const items = []
  let cursor
  do {
    const page = await get(path, { ...parameters, limit: 200, cursor }, signal)
    items.push(...page.items)
    cursor = page.next
  } while (cursor && items.length < limit)
  return items
}

/** segment is a name as part of a path. */
export function segment(name) {
  return encodeURIComponent(name)
}

/** address is where path is, in the reader's language. */
export function address(path, parameters = {}) {
  const url = new URL(path, base)
  for (const [name, value] of Object.entries({ ...parameters, lang: language })) {
    if (value !== '' && value !== null && value !== undefined) url.searchParams.set(name, value)
  }
  return url
}

async function request(method, url, body, signal) {
  const file = body instanceof Blob
  const headers = method === 'GET' ? {} : { 'Content-Type': file ? body.type : 'application/json', 'X-Hako-CSRF': csrf }
  const own = new AbortController()
  const timer = method === 'GET' && setTimeout(probe, patience)
  if (timer) waiting.add(own)
  let response, data
  try {
    response = await fetch(url, { method, headers, body: file ? body : body && JSON.stringify(body), signal: signal ? AbortSignal.any([signal, own.signal]) : own.signal })
    data = await decoded(response)
  } catch (error) {
    if (own.signal.aborted) throw new OfflineError('no answer')
    if (error.name === 'AbortError') throw error
    become('offline')
    throw new OfflineError(error.message)
  } finally {
    clearTimeout(timer)
    waiting.delete(own)
  }
  if (response.status >= 502 && !data.error) {
    become('offline')
    throw new OfflineError(`HTTP ${response.status}`)
  }
  become('online')
  if (response.ok) return data
  if (response.status === 401 && csrf) events.dispatchEvent(new Event('signedout'))
  throw new APIError(response.status, data)
}

async function decoded(response) {
  try {
    return await response.json() ?? {}
  } catch (error) {
    if (error.name === 'AbortError') throw error
    return {}
  }
}

/** become notes whether the server answers. Requests from before it hung may never be answered, so they are sent again. */
function become(now) {
  if (now === state) return
  if (now === 'online') giveUp()
  state = now
  events.dispatchEvent(new Event(now))
}

let probing = false

/** probe asks for what is answered quickly, and again while that is not: one slow answer is no server that hangs. */
async function probe() {
  if (probing) return
  probing = true
  for (let answered = false; !answered;) {
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), probePatience)
    try {
      await fetch(new URL('session', base), { cache: 'no-store', signal: late.signal })
      answered = true
    } catch {
      become(late.signal.aborted ? 'hanging' : 'offline')
      await new Promise(resolve => setTimeout(resolve, 2000))
    }
    clearTimeout(timer)
  }
  probing = false
  become('online')
}

/** giveUp ends the requests that still wait. Who sent them sends them again. */
function giveUp() {
  for (const request of waiting) request.abort()
}

/** retry asks again for all that the page shows. */
export function retry() {
  giveUp()
  events.dispatchEvent(new Event('retry'))
}

/** live hands on the events of the server's stream: "call", "started", "dropped", "approvals", "plugins", with what they tell in detail. */
export const live = new EventTarget()

/** recent are the newest calls since the page was opened, the newest first. */
export const recent = []

live.addEventListener('call', ({ detail }) => {
  recent.unshift(detail)
  recent.length = Math.min(recent.length, kept)
})

/** listen connects the stream until signal aborts, and again when it breaks. */
export function listen(signal) {
  let source, timer
  let wait = 500
  const connect = () => {
    source = new EventSource(address('calls'))
    source.addEventListener('hello', () => { wait = 500 })
    source.addEventListener('end', again)
    source.addEventListener('error', again)
    for (const name of names) {
      source.addEventListener(name, event => live.dispatchEvent(new CustomEvent(name, { detail: JSON.parse(event.data) })))
    }
  }
  // Why it ended, the session tells: it is over, or the server is away, which identify notes.
  const again = async () => {
    source.close()
    clearTimeout(timer)
    timer = setTimeout(connect, wait)
    wait = Math.min(wait * 2, longestWait)
    const session = await identify().catch(() => null)
    if (session && !session.user && !signal.aborted) events.dispatchEvent(new Event('signedout'))
  }
  connect()
  signal.addEventListener('abort', () => {
    clearTimeout(timer)
    source.close()
  })
}

/**
 * every calls work now and then at intervals, in milliseconds, until signal aborts: one at a time, and seldom while nobody looks. What the server
 * refuses goes to failed; that it cannot be reached, or the session has ended, the whole page tells. It returns a function that asks for it at once.
 */
export function every(interval, work, signal, failed) {
  let timer, running, wanted
  const turn = async () => {
    clearTimeout(timer)
    wanted = true
    if (running) return
    for (running = true; wanted && !signal.aborted;) {
      wanted = false
      try {
        await work()
      } catch (error) {
        if (!signal.aborted && !(error instanceof OfflineError) && error.status !== 401) failed(error)
      }
    }
    running = false
    if (!signal.aborted) timer = setTimeout(turn, document.hidden ? interval * 6 : interval)
  }
  document.addEventListener('visibilitychange', () => document.hidden || turn(), { signal })
  events.addEventListener('online', turn, { signal })
  events.addEventListener('retry', turn, { signal })
  signal.addEventListener('abort', () => clearTimeout(timer))
  turn()
  return turn
}
