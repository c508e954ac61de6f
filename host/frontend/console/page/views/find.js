// Plugins in the operator's indexes: a search, the permissions of a match, and the button that adds it to the folder, pending approval.
import { fetchAddition } from '../add-plugin.js'
import { showDialog } from '../dialog.js'
import { h, put } from '../dom.js'
import { ago, number, t } from '../language.js'
import { card, code, head, listing, may, problem } from '../parts.js'
import { post } from '../server.js'
import { table } from '../table.js'

/** pause is the delay between the last keystroke and the search, in milliseconds. */
const pause = 200

export default function find(page) {
  if (!may(page.session, 'admin')) return put(page.root, head(t('nav.find')), problem({ role: 'admin' }))
  const text = h('input', { type: 'search', placeholder: t('find.words'), 'aria-label': t('find.words') })
  const count = h('p', { class: 'hint', role: 'status' })
  const sources = h('div')
  const list = table({
    caption: t('nav.find'), rowKey: row => `${row.index}/${row.name}`, empty: t('find.empty'), open,
    columns: [
      { label: t('column.plugin'), cell: row => [h('strong', {}, row.name), h('small', {}, row.title || row.description), h('small', { class: 'narrow' }, row.asks),
        row.resembles && h('small', { class: 'warning' }, t('find.resembles', { name: row.resembles }))] },
      { label: t('column.version'), class: 'nowrap', cell: row => row.version },
      { label: t('find.installed'), class: 'nowrap', cell: row => row.installed ?? '–' },
      { label: t('find.claims'), class: 'wide grow', cell: row => row.asks },
      { label: t('find.from'), class: 'wide', cell: row => [row.publisher, h('small', {}, row.index)] },
    ],
  })
  put(page.root, head(t('nav.find')), h('p', { class: 'hint' }, t('find.about')), h('div', { class: 'tools' }, text, count), list.element, sources, servers(page, text))
  const again = page.poll(60_000, async () => {
    const { items, total, indexes } = await page.get('index', { q: text.value.trim() })
    list.update(items)
    put(count, indexes.length === 0 ? t('find.none') : t('find.count', { n: total }), total > items.length && ` · ${t('find.first', { n: number(items.length) })}`)
    put(sources, indexes.length > 0 && card(t('find.indexes'), h('ul', { class: 'lines' }, indexes.map(source))))
  })
  let timer
  text.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(again, pause)
  })
  page.signal.addEventListener('abort', () => clearTimeout(timer))
}

/** servers searches the registry of MCP servers, on request only: the words leave the operator's network. */
function servers(page, text) {
  const state = h('div', { role: 'status' })
  const list = table({
    caption: t('find.servers'), rowKey: row => row.name, empty: t('find.noServers'), open: server,
    columns: [
      { label: t('find.server'), cell: row => [h('strong', {}, row.name), h('small', {}, row.title || row.description)] },
      { label: t('column.version'), class: 'nowrap', cell: row => row.version ?? '' },
    ],
  })
  const found = h('div')
  const search = h('button', { type: 'button', async onclick() {
    search.disabled = true
    try {
      const { registry, items, more } = await page.get('index/servers', { q: text.value.trim() })
      put(state, h('p', { class: 'hint' }, registry ? [t('find.serversFrom'), ' ', code(registry), more && ` · ${t('find.first', { n: number(items.length) })}`] : t('find.noRegistry')))
      put(found, registry && list.element)
      list.update(items)
    } catch (error) {
      put(state, problem(error))
    }
    search.disabled = false
  } }, t('find.serversSearch'))
  return card(t('find.servers'), h('p', { class: 'hint' }, t('find.serversAbout')), h('div', { class: 'tools' }, search), state, found)
}

/** server shows the lines that configure a server. Nothing is added: they go into the file of upstream servers. */
function server({ name, version, description, status, setups }) {
  showDialog({ title: `${name} ${version ?? ''}`, side: true, body: [
    h('p', {}, description), status === 'deprecated' && h('p', { class: 'notice' }, t('find.deprecated')), h('p', { class: 'notice' }, t('find.serverAbout')),
    setups.map(({ kind, config, reason, notes }) => [h('h3', {}, kind),
      config ? listing(JSON.stringify(config, null, 2), kind) : h('p', { class: 'hint' }, t('find.unusable', { reason })),
      notes?.length > 0 && h('ul', { class: 'lines' }, notes.map(note => h('li', {}, note)))]),
  ] })
}

/** source describes an index: the number of its plugins, and the age of the cached copy if it cannot be loaded. */
function source({ location, title, plugins, fetched, problem: trouble, omitted }) {
  return h('li', {}, title && [h('strong', {}, title), ' '], code(location), ' ', t('find.count', { n: plugins }),
    trouble && h('div', { class: 'notice' }, h('p', {}, trouble), fetched && plugins > 0 && h('p', {}, t('find.copy', { ago: ago(fetched) }))),
    omitted?.length > 0 && h('details', {}, h('summary', {}, t('find.omitted')), h('ul', { class: 'lines' }, omitted.map(line => h('li', {}, line)))))
}

/** open reads a listed plugin and shows its permissions. */
function open(row) {
  return fetchAddition(`${row.name} ${row.version}`, row.reference, () => post('index/read', { index: row.index, name: row.name }), { listed: row })
}
