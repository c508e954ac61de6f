// The frame around the views: the navigation, the number of pending questions, and the state of the server.
import { h, put } from './dom.js'
import { listenForKeys } from './keys.js'
import { learn, t } from './language.js'
import { navigation, views } from './nav.js'
import { problem, refresh } from './parts.js'
import { events, every, get, identify, listen, live, pages, retry, segment } from './server.js'

/** openShell renders the console for session and returns a function that removes it. change renders it again, for another session if one is given. */
export function openShell(session, change) {
  const ended = new AbortController()
  const { signal } = ended
  const main = h('main', { id: 'main', tabindex: -1 })
  const spoken = h('div', { class: 'unseen', 'aria-live': 'polite' })
  const frame = navigation(session, change)
  const offline = h('div', { class: 'offline', role: 'status' })
  put(document.body,
    h('a', { class: 'skip', href: '#main', onclick: event => {
      event.preventDefault()
      main.focus()
    } }, t('skip')),
    frame.element, h('div', { class: 'content' }, offline, main), spoken)

  for (const state of ['offline', 'hanging']) {
    events.addEventListener(state, () => put(offline, h('p', {}, t(state), ' ', h('button', { type: 'button', onclick: retry }, t('retry')))), { signal })
  }
  events.addEventListener('online', () => put(offline), { signal })
  const waiting = watchApprovals(frame, spoken, signal)
  const clock = setInterval(() => document.querySelectorAll('time.since').forEach(refresh), 10_000)
  signal.addEventListener('abort', () => clearInterval(clock))
  const router = route(session, main, frame, waiting, signal)
  listen(signal)
  listenForKeys(signal)
  router()
  return () => ended.abort()
}

/** watchApprovals updates the number of pending questions in the navigation and the title, and announces new ones to screen readers. */
function watchApprovals(frame, spoken, signal) {
  const waiting = { n: 0, title: '', show }
  function show(n) {
    if (n > waiting.n) spoken.textContent = t('approvals.new', { n })
    waiting.n = n
    frame.count(n)
    document.title = titled(waiting)
  }
  every(20_000, async () => show((await get('approvals', {}, signal)).items.length), signal, () => {})
  live.addEventListener('approvals', event => show(event.detail.waiting), { signal })
  return waiting
}

function titled({ n, title }) {
  return `${n ? `(${n}) ` : ''}${title} – hako`
}

/** route shows the view that the address names, and returns a function that does so again. */
function route(session, main, frame, waiting, ended) {
  let left = new AbortController()
  let first = true
  const go = async () => {
    const { hash } = location
    const [path, search] = hash.replace(/^#\/?/, '').split('?')
    const [name, ...rest] = path.split('/').map(part => decode(part))
    const view = views.includes(name) ? name : views[0]
    left.abort()
    left = new AbortController()
    const { signal } = left
    const [module] = await Promise.all([import(`./views/${view}.js`), view !== views[0] && learn()]).catch(unloaded)
    if (signal.aborted || ended.aborted) return
    if (!module.default) return put(main, module)
    waiting.title = t(`nav.${view}`)
    document.title = titled(waiting)
    frame.at(view)
    const root = h('div', { class: `view ${view}` })
    const alert = h('div', { role: 'alert' })
    put(main, alert, root)
    module.default(page(session, root, alert, waiting, { hash, view, path: rest.filter(Boolean), query: new URLSearchParams(search) }, signal))
    if (!first) root.querySelector('h1')?.focus()
    first = false
    scrollTo(0, 0)
  }
  addEventListener('hashchange', go, { signal: ended })
  ended.addEventListener('abort', () => left.abort())
  return go
}

/** unloaded explains why a view was not loaded: the server cannot be reached, or it serves another version of the page. */
async function unloaded(error) {
  return [problem(await identify().then(() => error, away => away))]
}

/** page returns a view's context: its root element, the parsed address, and requests that end with the view. */
function page(session, root, alert, waiting, { hash, view, path, query }, signal) {
  const failed = error => put(alert, problem(error))
  return {
    session, root, path, query, signal, failed, waiting: waiting.show,
    // show fills the view; a keyboard focus inside moves to its head.
    show(...content) {
      const within = root.contains(document.activeElement)
      put(root, content)
      if (within) root.querySelector('h1')?.focus()
    },
    // note sets a parameter of the address, or removes it if it is empty. It replaces the history entry, so that a reload and "back" find it again.
    note(name, value) {
      if (value) query.set(name, value)
      else query.delete(name)
      // The reader may have gone elsewhere already: "hashchange" comes later than the new address.
      if (location.hash !== hash) return
      history.replaceState(null, '', `#/${[view, ...path].map(segment).join('/')}${query.size > 0 ? `?${query}` : ''}`)
      ;({ hash } = location)
    },
    get: (from, parameters) => get(from, parameters, signal),
    pages: (from, parameters, limit) => pages(from, parameters, signal, limit),
    poll: (interval, work) => every(interval, async () => {
      await work()
      put(alert)
    }, signal, failed),
    // once repeats work until it succeeds: an unreachable server only delays it.
    once(work) {
      const done = new AbortController()
      every(10_000, async () => {
        await work()
        put(alert)
        done.abort()
      }, AbortSignal.any([signal, done.signal]), failed)
    },
  }
}

function decode(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
