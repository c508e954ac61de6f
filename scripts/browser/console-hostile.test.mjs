// Everything that a plugin, a client, a caller or an upstream server can write, written by an enemy: it appears as text and as nothing else.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import { answers, call, session } from './answers.mjs'
import { clean, narrow, startChromium, visit } from './chromium.mjs'
import { startFake } from './fake.mjs'

const attack = '"><img src=x onerror="window.hacked=1"><script>window.hacked=2</script><svg onload="window.hacked=3"></svg>javascript:window.hacked=4\u202etxt.exe\u061c\u2066\u3164\ufe01\u{e0041}\u{e01ef}\u2800\u009b2J\u001b[2J\u200bn\u00ad\u2028{n}'
const keep = new Set(['id', 'digest', 'state', 'outcome', 'time', 'type', 'next', 'from', 'asked', 'expires', 'csrf', 'role', 'via', 'kind', 'decision', 'status',
  'started', 'seen', 'since', 'finished', 'created', 'origin', 'last', 'method', 'mimeType', '$ref'])

/** hostile is the value with every text in it, and its free keys, made an attack. */
function hostile(value, key) {
  if (typeof value === 'string') return keep.has(key) ? value : `${attack}${value.slice(0, 3)}`
  if (Array.isArray(value)) return value.map(entry => hostile(entry, key))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, hostile(entry, name)]))
}

/** hostileSchema has attacks where a schema has texts of its author's, and keys that mean something to JavaScript. */
function hostileSchema() {
  const properties = Object.fromEntries([
    [attack, { type: 'string', description: attack, default: attack, examples: [attack] }],
    ['__proto__', { type: 'string', default: attack }], ['constructor', { type: 'object', properties: { prototype: { type: 'string', default: 'p' } } }],
    ['choice', { enum: [attack, 1, null, { a: attack }], default: attack }], ['loop', { $ref: '#' }], ['gone', { $ref: '#/$defs/__proto__' }],
    ['many', { type: 'array', items: { $ref: '#' }, default: [1] }], ['odd', 7], ['pattern', { type: 'string', pattern: '(a+)+$', default: 'a'.repeat(40) }],
  ])
  return { type: 'object', properties, required: [attack, 7, null] }
}

const content = [
  { type: 'text', text: attack }, { type: 'image', mimeType: 'image/svg+xml', data: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="window.hacked=5"/>').toString('base64') },
  { type: 'image', mimeType: 'image/png"><script>window.hacked=6</script>', data: 'AAAA' }, { type: 'image', mimeType: 'image/png', data: '"><script>window.hacked=7</script>' },
  { type: 'resource_link', uri: 'javascript:window.hacked=8', name: attack }, { type: 'resource', resource: { uri: attack, mimeType: 'text/html', text: attack } },
  { type: 'audio', mimeType: attack, data: attack }, { type: attack, text: attack }, null,
]

/** bomb is a schema that, followed to five levels, has 50 to the fifth fields. */
const bomb = { type: 'object', properties: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`p${i}`, { $ref: '#' }])) }

let chromium, host
before(async () => {
  chromium = await startChromium()
  const all = Object.fromEntries(Object.entries(answers(session())).map(([name, value]) => [name, hostile(value)]))
  const plugin = encodeURIComponent(all.plugins.items[0].name)
  host = await startFake({
    ...all,
    [`plugins/${decodeURIComponent(plugin)}`]: all['plugins/files'],
    [`tools/${all.tools.items[0].name}`]: { ...all['tools/get_weather'], inputSchema: hostileSchema(), outputSchema: hostileSchema() },
    [`POST tools/${all['tools/get_weather'].name}/call`]: { outcome: attack, isError: true, durationMs: 'soon', content, structured: { [attack]: attack, __proto__: 1 } },
  })
})
after(async () => {
  await chromium.close()
  await host.stop()
})

/** harmless fails if anything of an attack came to life. */
async function harmless(page, where) {
  const found = await page.evaluate(() => ({
    hacked: window.hacked, polluted: {}.polluted,
    scripts: document.querySelectorAll('body script, body iframe, body object, body embed, body base, body style, body link').length,
    handlers: [...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length,
    pictures: [...document.images].filter(image => !image.src.endsWith('/icon.svg') && !image.src.startsWith('data:image/png;base64,')).length,
    links: [...document.links].filter(link => !['http:', 'https:'].includes(link.protocol) || link.origin !== location.origin).length,
    hidden: document.body.innerText.match(/[\u202a-\u202e\u2066-\u2069\u061c\u3164\ufe01\u{e0000}-\u{e01ef}\u2800\u0080-\u009f\u001b\u200b\u00ad\u2028]/u)?.[0].codePointAt(0).toString(16),
  }))
  assert.deepEqual(found, { hacked: undefined, polluted: undefined, scripts: 0, handlers: 0, pictures: 0, links: 0, hidden: undefined }, where)
}

test('hostile texts stay texts, in every view and dialog', async () => {
  const page = await chromium.open(host.url, { size: 'phone' })
  await page.locator('.stat').first().waitFor()
  await host.connected()
  for (let id = 1; id < 4; id++) host.send('call', hostile(call(id)))
  for (const view of ['overview', 'calls', 'approvals', 'plugins', 'find', 'tools', 'toolsets', 'toolsets/support', 'audit', 'errors', 'calls/call_DONE', 'calls/call_RUN1', 'sessions', 'connections', 'configuration']) {
    await visit(page, view)
    await page.locator(`.${view.split('/')[0]} ${view === 'overview' ? '.stat' : view === 'approvals' ? '.question' : 'tbody tr'}`).first().waitFor()
    await page.locator('main', { hasText: 'onerror="window.hacked=1"' }).waitFor()
    await harmless(page, view)
    await narrow(page, view)
    if (!['audit', 'errors', 'find'].includes(view)) continue
    await page.locator(`.${view} .opener`).first().click()
    if (view === 'find') await page.locator('dialog .facts').waitFor()
    await harmless(page, `a dialog of ${view}`)
    await page.keyboard.press('Escape')
  }
  await clean(page)
})

test('a hostile plugin can be looked at, and approved', async () => {
  const page = await chromium.open(`${host.url}#/plugins`)
  await page.locator('.plugins .opener').first().click()
  await page.locator('.head .primary').click()
  assert.match(await page.locator('dialog').textContent(), /onerror="window\.hacked=1"/)
  await harmless(page, 'the dialog')
  await page.keyboard.press('Escape')
  await page.locator('.head button', { hasText: 'Choose what it gets' }).click()
  assert.match(await page.locator('dialog form').textContent(), /onerror="window\.hacked=1"/)
  await harmless(page, 'the form')
  await clean(page)
})

test('a hostile schema makes a form, and a hostile result is shown', async () => {
  const page = await chromium.open(`${host.url}#/tools`, { size: 'phone' })
  await page.locator('.tools .opener').filter({ hasText: '{n}get' }).click()
  await page.locator('form').waitFor()
  await harmless(page, 'the form')
  await page.locator('form .primary').click()
  await page.locator('.result h3').waitFor()
  assert.match(await page.locator('.result').textContent(), /<script>window\.hacked=2<\/script>/)
  await page.waitForFunction(() => [...document.images].every(image => image.complete)) // what would load late has
  await harmless(page, 'the result')
  await narrow(page, 'the result')
  const { arguments: sent } = host.posted.at(-1).body
  assert.equal(sent[attack], attack)
  assert.equal(Object.getOwnPropertyDescriptor(sent, '__proto__')?.value, attack)
  await clean(page)
})

test('a schema that grows without end makes a form of a size', async t => {
  const tool = answers()['tools/get_weather']
  const other = await startFake({ ...answers(session()), 'tools/get_weather': { ...tool, inputSchema: bomb } })
  t.after(() => other.stop())
  const page = await chromium.open(`${other.url}#/tools/get_weather`)
  await page.locator('form').waitFor()
  const fields = await page.locator('form textarea').count()
  assert.ok(fields > 50 && fields < 700, `${fields} fields`)
  await page.locator('form .primary').click()
  await page.locator('.result pre').first().waitFor()
  assert.deepEqual(other.posted.at(-1).body.arguments, {})
  await clean(page)
})

test('a very long line is shown in parts', async t => {
  const json = `"${'長い文、a long word。'.repeat(30_000)}"`
  const other = await startFake({ ...answers(session()), 'approvals/apr_1/arguments': { json } })
  t.after(() => other.stop())
  const page = await chromium.open(`${other.url}#/approvals`)
  await page.locator('.question summary').filter({ hasText: 'Exact arguments' }).first().click()
  const listing = page.locator('.question details[open]').filter({ hasText: 'Exact arguments' }).locator('pre')
  const more = page.locator('.question button', { hasText: 'Show more (of ' })
  await more.waitFor()
  assert.equal((await listing.textContent()).length, 20_000)
  while (await more.isVisible()) await more.click()
  assert.equal(await listing.textContent(), json)
  await clean(page)
})

/** spans are the hidden characters, as internal/visible tests them. */
const spans = [[0, 8], [0xb, 0x1f], [0x7f, 0x9f], [0xad], [0x34f], [0x61c], [0x115f, 0x1160], [0x17b4, 0x17b5], [0x180b, 0x180f], [0x200b, 0x200f], [0x2028, 0x202e],
  [0x2060, 0x2064], [0x2066, 0x206f], [0x2800], [0x3164], [0xd800, 0xdfff], [0xfdd0, 0xfdef], [0xfe00, 0xfe0f], [0xfeff], [0xffa0], [0xfff9, 0xfffb], [0xfffe, 0xffff],
  [0x1bca0, 0x1bca3], [0x1d173, 0x1d17a], [0xe0000, 0xe007f], [0xe0100, 0xe01ef], [0x10fffe, 0x10ffff]]

test('no character hides, and what people write stays as it is', async () => {
  const page = await chromium.open(host.url)
  const { passed, changed, marked } = await page.evaluate(async spans => {
    const { h } = await import('./dom.js')
    const shown = text => h('p', null, text).textContent
    const passed = []
    for (const [first, last = first] of spans) {
      for (let r = first; r <= last; r++) if (shown(`a${String.fromCodePoint(r)}b`) !== 'a␦b') passed.push(r.toString(16))
    }
    const kept = ['天気　ガ가', 'é é ẵ', '❤️ ⚠️ 1️⃣ #️⃣', '👩‍💻 🏳️‍🌈 👨‍👩‍👧 👍🏽', 'می‌خواهم', 'क्‍ष ශ්‍රී', 'שָׁלוֹם', 'a b\u00a0c', 'lines\nand\ttabs\r\n', '؀١', '‼️']
    const alone = ['ad\u200dmin', '👩\u200d', '👩\u200da', 'ad\u200cmin', 'a\ufe0fb', '❤\ufe0e', 'a\ufe0f\u20e3', `a${'\u0301'.repeat(9)}`, 'a\rb']
    return { passed, changed: kept.filter(text => shown(text) !== text), marked: alone.map(text => [...shown(text)].filter(c => c === '␦').length) }
  }, spans)
  assert.deepEqual(passed, [])
  assert.deepEqual(changed, [])
  assert.deepEqual(marked, Array(9).fill(1))
  await clean(page)
})
