// The frame around the views: navigation, who is logged in, what waits for an answer, and whether the server is there.
import { h, icon, put } from './dom.js'
import { t, term } from './language.js'
import { problem } from './parts.js'
import { events, every, get, identify, listen, live, pages, post } from './server.js'
import { switches } from './settings.js'

const views = ['overview', 'calls', 'approvals', 'plugins', 'tools', 'audit', 'errors', 'connections', 'configuration']

/** openShell puts the console up for session and returns what takes it down. change puts it up anew, for another session if one is given. */
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

  events.addEventListener('offline', () => put(offline, h('p', {}, t('offline'))), { signal })
  events.addEventListener('online', () => put(offline), { signal })
  const waiting = watchApprovals(frame, spoken, signal)
  const router = route(session, main, frame, waiting, signal)
  listen(signal)
  router()
  return () => ended.abort()
}

/** logoutButton ends the session, or all of this person. Where hako is away it does nothing, and the page says so anyway. */
function logoutButton(label, everywhere, change) {
  const logout = async () => change(await post('logout', { everywhere }).then(identify))
  return h('button', { type: 'button', class: everywhere ? 'small plain' : 'small', onclick: () => logout().catch(() => {}) }, label)
}

/** navigation is the bar with the views and the person. */
function navigation(session, change) {
  const { user } = session
  const badge = h('span', { class: 'count', hidden: true })
  const links = new Map(views.map(name => [name, h('a', { href: `#/${name}` }, icon(name), t(`nav.${name}`), name === 'approvals' && badge)]))
  const menu = h('button', { type: 'button', class: 'plain menu', 'aria-expanded': 'false', 'aria-controls': 'nav', 'aria-label': t('nav.menu') }, icon('menu'))
  const element = h('header', { class: 'bar' },
    h('div', { class: 'brand' }, h('img', { src: 'icon.svg', alt: '', width: 22, height: 22 }), h('strong', {}, 'hako'), menu),
    h('nav', { id: 'nav', 'aria-label': t('nav.label') }, h('ul', {}, [...links.values()].map(link => h('li', {}, link)))),
    h('div', { class: 'person' },
      h('p', {}, h('span', { class: 'name', title: user.name }, user.name), h('span', { class: 'badge plain' }, term('role', user.role))),
      switches(() => change()),
      logoutButton(t('logout'), false, change), logoutButton(t('logout.everywhere'), true, change)))
  const open = wanted => {
    element.classList.toggle('open', wanted)
    menu.setAttribute('aria-expanded', String(wanted))
  }
  menu.addEventListener('click', () => open(!element.classList.contains('open')))
  element.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || !element.classList.contains('open')) return
    open(false)
    menu.focus()
  })
  return {
    element,
    at(name) {
      open(false)
      links.forEach((link, key) => key === name ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current'))
    },
    count(n) {
      badge.hidden = n === 0
      put(badge, h('span', { 'aria-hidden': 'true' }, n), h('span', { class: 'unseen' }, t('nav.waiting', { n })))
    },
  }
}

/** watchApprovals keeps the number of questions that wait: in the navigation, in the title, and said aloud when there are more. */
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

/** route shows the view that the address names, and returns what does so now. */
function route(session, main, frame, waiting, ended) {
  let left = new AbortController()
  let first = true
  const go = async () => {
    const [path, search] = location.hash.replace(/^#\/?/, '').split('?')
    const [name, ...rest] = path.split('/').map(part => decode(part))
    const view = views.includes(name) ? name : views[0]
    left.abort()
    left = new AbortController()
    const { signal } = left
    const module = await import(`./views/${view}.js`).catch(problem)
    if (signal.aborted || ended.aborted) return
    if (!module.default) return put(main, module)
    waiting.title = t(`nav.${view}`)
    document.title = titled(waiting)
    frame.at(view)
    const root = h('div', { class: `view ${view}` })
    const alert = h('div', { role: 'alert' })
    put(main, alert, root)
    module.default(page(session, root, alert, waiting, { path: rest.filter(Boolean), query: new URLSearchParams(search) }, signal))
    if (!first) root.querySelector('h1')?.focus()
    first = false
    scrollTo(0, 0)
  }
  addEventListener('hashchange', go, { signal: ended })
  ended.addEventListener('abort', () => left.abort())
  return go
}

/** page is what a view gets: where to show, what the address says, and how to ask the server for as long as the view is there. */
function page(session, root, alert, waiting, { path, query }, signal) {
  const failed = error => put(alert, problem(error))
  return {
    session, root, path, query, signal, failed, waiting: waiting.show,
    // show fills the view; whoever was in it with the keyboard is at its head again.
    show(...content) {
      const within = root.contains(document.activeElement)
      put(root, content)
      if (within) root.querySelector('h1')?.focus()
    },
    get: (from, parameters) => get(from, parameters, signal),
    pages: (from, parameters, limit) => pages(from, parameters, signal, limit),
    poll: (interval, work) => every(interval, async () => {
      await work()
      put(alert)
    }, signal, failed),
  }
}

function decode(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
