// The client of the server's API: JSON over fetch, with the session's cookie, and one event stream. All responses are data, to be shown as text.
import { language } from './language.js'

const base = new URL('api/', document.baseURI)
const names = ['call', 'started', 'dropped', 'approvals', 'plugins']
const longestWait = 5_000
const kept = 500
// After this time a request makes the page probe whether the server still responds, in milliseconds.
const patience = 8_000
const probePatience = 5_000

/**
 * APIError is an error response of the server. role names the role that the request needs, fields has an error for each field of a form, body the whole
 * response.
 */
class APIError extends Error {
  constructor(status, body) {
    const { text, code, remedy, role, retryAfter, fields } = body.error ?? {}
    super(text ?? `HTTP ${status}`)
    Object.assign(this, { status, code, remedy, role, retryAfter, fields, body })
  }
}

/** OfflineError means that the server could not be reached. */
export class OfflineError extends Error {}

/**
 * events are those of the whole page: "offline" when the server cannot be reached, "hanging" when it accepts connections but does not respond, "online" when
 * it responds again, "retry" when the reader asks for another try, and "signedout" when the session has ended.
 */
export const events = new EventTarget()

let csrf = ''
let state = 'online'
// The pending requests that can be sent again.
const waiting = new Set()

/** identify requests the current session. It has no parameters: the page preloads it before its scripts have loaded. */
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

/** get requests path. Empty parameters are omitted. */
export function get(path, parameters = {}, signal) {
  return request('GET', address(path, parameters), undefined, signal)
}

/** post sends body as JSON. */
export function post(path, body = {}, signal) {
  return request('POST', address(path), body, signal)
}

/** upload sends a file unchanged. */
export function upload(path, file, parameters) {
  return request('POST', address(path, parameters), new Blob([file], { type: 'application/wasm' }))
}

/** pages requests all pages of a list, up to limit entries. */
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

/** segment escapes a name for use in a path. */
export function segment(name) {
  return encodeURIComponent(name)
}

/** address returns the URL of a path of the API, in the reader's language. */
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

/** become sets the state of the server. Requests from before it hung may never be answered, so they are sent again. */
function become(now) {
  if (now === state) return
  if (now === 'online') giveUp()
  state = now
  events.dispatchEvent(new Event(now))
}

let probing = false

/** probe sends a cheap request, and repeats it until it is answered: one slow response does not mean that the server hangs. */
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

/** giveUp aborts the pending requests. Their senders repeat them. */
function giveUp() {
  for (const request of waiting) request.abort()
}

/** retry repeats the requests for everything that the page shows. */
export function retry() {
  giveUp()
  events.dispatchEvent(new Event('retry'))
}

/** live dispatches the events of the server's stream: "call", "started", "dropped", "approvals", "plugins", with their data as detail. */
export const live = new EventTarget()

/** recent has the newest calls since the page was opened, the newest first. */
export const recent = []

live.addEventListener('call', ({ detail }) => {
  recent.unshift(detail)
  recent.length = Math.min(recent.length, kept)
})

/** listen connects the stream until signal aborts, and reconnects when it breaks. */
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
  // identify finds the cause: the session has ended, or the server cannot be reached.
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
 * every calls work now and at intervals, in milliseconds, until signal aborts: one at a time, and rarely while the page is hidden. Error responses go to
 * failed; the whole page shows that the server cannot be reached or the session has ended. It returns a function that calls work at once.
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
