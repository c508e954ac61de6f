// The navigation: every view of the console, in groups, with the user below.
import { h, icon, put, uniqueID } from './dom.js'
import { openMenu } from './keys.js'
import { t, term } from './language.js'
import { identify, post } from './server.js'
import { switches } from './settings.js'

/** groups has the views in the order of the menu. A view is a file in views/, a text nav.NAME and an icon in dom.js. */
const groups = [
  ['', [
    'overview',
    'approvals',
  ]],
  ['activity', [
    'calls',
    'errors',
    'audit',
  ]],
  ['offer', [
    'plugins',
    'find',
    'tools',
    'toolsets',
  ]],
  ['access', [
    'policy',
    'sessions',
    'tokens',
  ]],
  ['host', [
    'connections',
    'configuration',
  ]],
]

/** views are the names of all views; the first is the start page. */
export const views = groups.flatMap(([, names]) => names)

/** navigation makes the bar. at marks the current view, count shows the number of pending questions. */
export function navigation(session, change) {
  const { user } = session
  const badge = h('span', { class: 'count', hidden: true })
  const links = new Map(views.map(name => [name, h('a', { href: `#/${name}` }, icon(name), t(`nav.${name}`), name === 'approvals' && badge)]))
  const part = (group, names) => {
    const id = uniqueID('group')
    const heading = group && h('p', { id }, t(`nav.group.${group}`))
    return h('div', {}, heading, h('ul', { 'aria-labelledby': group ? id : null }, names.map(name => h('li', {}, links.get(name)))))
  }
  const menu = h('button', { type: 'button', class: 'plain menu', 'aria-expanded': 'false', 'aria-controls': 'nav', 'aria-label': t('nav.menu') }, icon('menu'))
  const element = h('header', { class: 'bar' },
    h('div', { class: 'brand' }, h('img', { src: 'icon.svg', alt: '', width: 22, height: 22 }), h('strong', {}, 'hako'),
      h('button', { type: 'button', class: 'finder', 'aria-keyshortcuts': 'Control+K Meta+K', onclick: openMenu }, icon('find'), h('span', {}, t('menu.open')), h('kbd', { 'aria-hidden': 'true' }, 'Ctrl K')), menu),
    h('nav', { id: 'nav', 'aria-label': t('nav.label') }, groups.map(([group, names]) => part(group, names))),
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

/** logoutButton ends the session, or all sessions of the user. It does nothing while hako cannot be reached, which the page shows anyway. */
function logoutButton(label, everywhere, change) {
  const logout = async () => change(await post('logout', { everywhere }).then(identify))
  return h('button', { type: 'button', class: everywhere ? 'small plain' : 'small', onclick: () => logout().catch(() => {}) }, label)
}
