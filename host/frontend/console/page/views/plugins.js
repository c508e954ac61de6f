// Plugins: their permissions in plain words, and their approval and revocation.
import { addPlugin, fetchAddition } from '../add-plugin.js'
import { chooser } from '../choose.js'
import { decide, showDialog } from '../dialog.js'
import { h, put } from '../dom.js'
import { filters, has } from '../filters.js'
import { digest, moment, number, t, term } from '../language.js'
import { badge, card, code, copyable, facts, guarded, head, listing, signature } from '../parts.js'
import { live, post, segment } from '../server.js'
import { table } from '../table.js'

export default function plugins(page) {
  if (page.path.length > 0) one(page, page.path[0])
  else all(page)
}

const states = ['active', 'pending', 'revoked', 'broken', 'conflict']

function all(page) {
  let items = []
  const narrow = filters(page, () => show())
  const text = narrow.search(t('plugins.filter'))
  const state = narrow.choice('state', t('column.state'), { '': t('plugins.all'), ...Object.fromEntries(states.map(value => [value, term('state', value)])) })
  const list = table({
    caption: t('nav.plugins'), rowKey: row => `${row.name}/${row.file ?? ''}/${row.digest}`, page, narrow,
    empty: [h('p', {}, t('plugins.empty')), h('p', {}, h('a', { href: '#/find' }, t('nav.find'))), h('p', {}, code('hako plugin add FILE'))],
    open(row) { location.hash = `#/plugins/${segment(row.name || row.file)}` },
    columns: [
      { label: t('column.plugin'), by: 'name', value: row => row.name || row.file, cell: row => [h('strong', {}, row.name || row.file), h('small', {}, row.title ?? ''), row.reason && h('small', { class: 'narrow' }, row.reason)] },
      { label: t('column.state'), by: 'state', cell: row => badge('state', row.state) },
      { label: t('column.version'), class: 'wide', cell: row => row.version },
      { label: t('column.tools'), by: 'tools', down: true, class: 'number', cell: row => row.tools ?? 0 },
      { label: t('column.running'), by: 'running', down: true, class: 'number wide', cell: row => row.running ?? 0 },
      { label: t('column.reason'), class: 'wide grow', cell: row => row.reason ?? '' },
    ],
  })
  const add = h('button', { type: 'button', class: 'primary', onclick: addPlugin }, t('add.open'))
  const show = () => list.update(items.filter(row => (!state.value || row.state === state.value) && has(text.value, row.name, row.file, row.title, row.reason)))
  put(page.root, head(t('nav.plugins'), guarded(page.session, 'admin', add)), h('div', { class: 'tools' }, text, state), list.element)
  const again = page.poll(15_000, async () => {
    items = await page.pages('plugins')
    show()
  })
  live.addEventListener('plugins', again, { signal: page.signal })
}

function one(page, name) {
  let shown = ''
  const again = page.poll(15_000, async () => {
    const plugin = await page.get(`plugins/${segment(name)}`)
    if (JSON.stringify(plugin) === shown) return
    shown = JSON.stringify(plugin)
    page.show(details(page, plugin, again))
  })
  put(page.root, head(name))
  live.addEventListener('plugins', again, { signal: page.signal })
}

function details(page, plugin, again) {
  const { ask, consent } = plugin
  const readable = Boolean(plugin.name) // a file that cannot be read asks for nothing
  return [
    h('p', { class: 'back' }, h('a', { href: '#/plugins' }, t('nav.plugins'))),
    head(plugin.name || plugin.file, badge('state', plugin.state), actions(page, plugin, again)),
    plugin.description && h('p', { class: 'lead' }, plugin.description),
    (ask || plugin.reason) && h('p', { class: 'notice' }, ask ? t(waiting(plugin)) : plugin.reason),
    ask && !ask.ready && unready(plugin),
    readable && h('div', { class: 'pair' },
      card(t('plugins.asks'), lines(plugin.asks)),
      card(t('plugins.gets'), plugin.gets?.length ? lines(plugin.gets) : h('p', { class: 'hint' }, t('plugins.getsNothing')))),
    readable && card(t('plugins.tools'), toolList(plugin)),
    plugin.config?.length > 0 && card(t('plugins.config'), h('p', { class: 'hint' }, t('plugins.configAbout', { name: plugin.name })), keyList(plugin.config)),
    h('div', { class: 'pair' },
      card(t('plugins.facts'), facts([
        [t('column.version'), plugin.version], [t('plugins.license'), plugin.license], [t('plugins.file'), copyable(plugin.path)],
        [t('plugins.digest'), copyable(plugin.digest)], [t('plugins.signer'), signature(plugin.signer)],
        [t('plugins.serving'), plugin.serving && plugin.serving !== plugin.digest && code(plugin.serving)],
        [t('plugins.consent'), consent && consentText(consent)], [t('plugins.note'), consent?.note],
      ])),
      installed(page, plugin),
      readable && card(t('plugins.limits'), facts(Object.entries(plugin.limits ?? {}).map(([key, value]) => [code(key), limit(key, value)])))),
  ]
}

/** counted are the limits that are plain numbers; all others have a unit. */
const counted = ['cpu', 'concurrency', 'queue', 'rate', 'openFiles', 'requests', 'calls', 'parallelCalls']

function limit(key, value) {
  return counted.includes(key) ? t(`limit.${key}`, { n: number(Number(value)) }) : value
}

/** installed shows the origin of a plugin, with the buttons to update, roll back and remove it. */
function installed(page, plugin) {
  if (!plugin.installed) return null
  const { name, installed: { from, previous } } = plugin
  const button = (label, onclick, kind) => h('button', { type: 'button', class: kind, onclick }, t(label))
  return card(t('plugins.installed'),
    facts([[t('add.from'), from && code(from)], [t('plugins.previous'), previous]]),
    h('div', { class: 'actions' }, guarded(page.session, 'admin',
      from && button('plugins.newer', () => version(name, 'newer', 'update')),
      previous && button('plugins.rollback', () => version(name, 'previous', 'rollback')),
      button('plugins.remove', () => remove(plugin), 'danger'))))
}

/** version fetches another version of a plugin, and shows the differences before it replaces the installed one. */
function version(name, read, step) {
  return fetchAddition(name, null, async () => {
    const answer = await post(`plugins/${segment(name)}/${read}`, {})
    return read === 'newer' ? answer.newer : answer
  }, { step })
}

function remove({ name, digest: sum }) {
  decide({
    title: t('plugins.removeTitle', { name }), label: t('plugins.remove'), danger: true, body: h('p', {}, t('plugins.removeAbout')),
    async act() {
      const { left } = await post(`plugins/${segment(name)}/remove`, { digest: sum })
      location.hash = '#/plugins'
      if (left.length > 0) setTimeout(() => showDialog({ title: t('plugins.removed', { name }), body: [h('p', {}, t('plugins.left')), lines(left)] }))
    },
  })
}

/** waiting shows why a plugin is pending. Its reason field names the terminal command, which is not needed here. */
function waiting({ state, serving, consent }) {
  if (declined(consent)) return 'plugins.waits.declined'
  if (state === 'revoked') return 'plugins.waits.again'
  if (serving) return 'plugins.waits.update'
  return consent ? 'plugins.waits.changed' : 'plugins.waits.new'
}

/** unready shows what is missing before a plugin can be approved: choices on this page, or a step at the terminal. */
function unready({ ask, choose }) {
  const terminal = ask.remedy && listing(ask.remedy, t('choose.terminal'))
  if (!choose) return card(t('plugins.notHere'), h('p', {}, ask.problem ?? ''), terminal)
  return card(t('choose.needed'), h('p', {}, t('choose.neededAbout')), h('details', {}, h('summary', {}, t('choose.terminal')), h('p', { class: 'hint' }, ask.problem ?? ''), terminal))
}

/** declined reports whether a plugin that was never approved is not wanted. */
function declined(consent) {
  return Boolean(consent?.revokedAt) && !consent.approvedBy
}

function consentText(consent) {
  if (declined(consent)) return t('plugins.declined', { by: consent.revokedBy ?? '', at: moment(consent.revokedAt) })
  if (consent.revokedAt) return t('plugins.revoked', { by: consent.revokedBy ?? '', at: moment(consent.revokedAt) })
  return t('plugins.approved', { by: consent.approvedBy ?? '', at: moment(consent.approvedAt), version: consent.version })
}

function lines(texts) {
  return h('ul', { class: 'lines' }, (texts ?? []).map(text => h('li', {}, text)))
}

function toolList(plugin) {
  if (!plugin.tools?.length) return h('p', { class: 'hint' }, t('plugins.noTools'))
  return h('ul', { class: 'lines' }, plugin.tools.map(tool => h('li', {},
    plugin.state === 'active' ? h('a', { href: `#/tools/${segment(tool.name)}` }, code(tool.name)) : code(tool.name),
    h('span', { class: 'hint' }, ` ${firstLine(tool.description) || tool.title || ''}`))))
}

/** keyList lists the configuration keys. */
function keyList(keys) {
  return h('ul', { class: 'lines' }, keys.map(({ key, type, required, description }) => h('li', {},
    code(key), h('span', { class: 'hint' }, ` ${[type, required && t('form.required')].filter(Boolean).join(', ')}. ${description}`))))
}

function firstLine(text) {
  return String(text ?? '').split('\n')[0]
}

function actions(page, plugin, again) {
  const { ask, choose, consent } = plugin
  return guarded(page.session, 'admin',
    ask?.ready && h('button', { type: 'button', class: 'primary', onclick: () => approve(plugin, ask, again) }, t('plugins.approve')),
    choose && h('button', { type: 'button', class: ask && !ask.ready ? 'primary' : null, onclick: () => choosing(plugin, again) }, t(ask ? 'choose.open' : 'choose.change')),
    consent && !consent.revokedAt && h('button', { type: 'button', onclick: () => revoke(plugin, again) }, t('plugins.revoke')),
    ask && !consent && h('button', { type: 'button', onclick: () => decline(plugin, again) }, t('plugins.decline')))
}

/**
 * choosing shows the form for a plugin's permissions, then the summary to approve. chosen has the earlier choices, if the user comes back, and wrong the
 * server's errors for its fields.
 */
function choosing(plugin, again, chosen, wrong = {}) {
  const { name, choose } = plugin
  const form = chooser(choose, chosen, () => dialog.querySelector('footer .primary').click())
  const dialog = decide({
    title: t('choose.title', { name }), label: t('choose.review'), body: form.element,
    async act() {
      const choices = form.read()
      try {
        const ask = await post(`plugins/${segment(name)}/review`, { digest: choose.digest, choices })
        dialog.close()
        approve(plugin, ask, again, { choices })
      } catch (error) {
        if (error.fields) form.mark(error.fields)
        throw error
      }
    },
  })
  form.element.querySelector('input, textarea').focus()
  form.mark(wrong)
}

/** approve shows the grants to approve. If they have changed in the meantime, it shows them again. */
function approve(plugin, ask, again, { choices, changed = false } = {}) {
  const dialog = decide({
    title: t('plugins.approveTitle', { name: plugin.name }),
    label: t('plugins.approve'),
    back: choices && (() => choosing(plugin, again, choices)),
    body: [
      changed && h('p', { class: 'notice', role: 'alert' }, t('plugins.changed')),
      ask.additions && news(ask),
      h('h3', {}, t('plugins.asks')), lines(ask.asks),
      ask.gets?.length > 0 && [h('h3', {}, t('plugins.withYes')), lines(ask.gets)],
      facts([[t('plugins.digest'), code(digest(ask.digest))], [t('plugins.signer'), signature(plugin.signer)]]),
    ],
    async act() {
      try {
        await post(`plugins/${segment(plugin.name)}/approve`, { digest: ask.digest, version: ask.version, choices })
      } catch (error) {
        const changed = error.status === 409 && error.body.ask
        if (!changed && !(error.fields && choices)) throw error
        dialog.close()
        if (changed) approve(plugin, changed, again, { choices, changed: true })
        else choosing(plugin, again, choices, error.fields)
      }
      again()
    },
  })
}

function news(ask) {
  if (ask.additions.length === 0) return h('p', { class: 'notice good' }, t('plugins.noMore', { version: ask.additionsTo ?? '' }))
  return h('div', { class: 'news' }, h('h3', {}, t('plugins.more', { version: ask.additionsTo ?? '' })), lines(ask.additions))
}

function revoke(plugin, again) {
  decide({
    title: t('plugins.revokeTitle', { name: plugin.name }), label: t('plugins.revoke'), danger: true,
    body: h('p', {}, t('plugins.revokeAbout')),
    async act() {
      await post(`plugins/${segment(plugin.name)}/revoke`, { digest: plugin.digest })
      again()
    },
  })
}

/** decline says of a plugin that was never approved that it is not wanted, so that it is not asked about again. */
function decline(plugin, again) {
  decide({
    title: t('plugins.declineTitle', { name: plugin.name }), label: t('plugins.decline'), body: h('p', {}, t('plugins.declineAbout')),
    async act() {
      await post(`plugins/${segment(plugin.name)}/revoke`, { digest: plugin.digest })
      again()
    },
  })
}
