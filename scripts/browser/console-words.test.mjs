// The dictionaries of the console: the same keys in all, each used, each used one there, the same places to fill.
import assert from 'node:assert/strict'
import { readFile, readdir } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'

import { root } from './chromium.mjs'

const folder = path.join(root, 'host/frontend/console/page')
const read = async language => {
  const parts = await Promise.all([`lang/${language}.js`, `lang/views/${language}.js`].map(file => import(path.join(folder, file))))
  const [first, views] = parts.map(part => part.default)
  return { first: Object.keys(first), views: Object.keys(views), all: { ...first, ...views } }
}
const [english, japanese] = await Promise.all(['en', 'ja'].map(read))
const [en, ja] = [english.all, japanese.all]

const forms = text => typeof text === 'string' ? [text] : Object.values(text)
const places = text => [...new Set(forms(text).flatMap(form => form.match(/\{\w+\}/g) ?? []))].sort()

test('both dictionaries have the same keys, in the same order, each once', () => {
  for (const part of ['first', 'views']) assert.deepEqual(japanese[part], english[part])
  assert.equal(Object.keys(en).length, english.first.length + english.views.length)
})

test('a text has the same places to fill in both', () => {
  for (const key of Object.keys(en)) assert.deepEqual(places(ja[key]), places(en[key]), key)
})

test('no text is empty, and Japanese is Japanese', () => {
  const latin = new Set(['frontend.slack', 'frontend.mcp-http', 'frontend.mcp-stdio'])
  for (const key of Object.keys(en)) {
    for (const text of [...forms(en[key]), ...forms(ja[key])]) assert.ok(text.trim(), key)
    assert.ok(latin.has(key) || forms(ja[key]).every(text => /[\u3040-\u30ff\u4e00-\u9fff]/.test(text)), `${key}: ${ja[key]}`)
  }
})

/** used finds the keys of the modules: those that are named, and the beginnings of those that are made of a word. */
async function used(names) {
  const source = (await Promise.all(names.map(name => readFile(path.join(folder, name), 'utf8')))).join('\n')
  return {
    called: [...source.matchAll(/\bt\('([^']+)'/g)].map(match => match[1]),
    quoted: new Set([...source.matchAll(/'([a-z]+(?:\.[a-zA-Z]+)*)'/g)].map(match => match[1])),
    made: [...source.matchAll(/(?:term|badge|choice)\([^)]*?'([a-z]+)'|`([a-z.]+)\.\$\{/g)].map(match => match[1] ?? match[2]),
  }
}

const needs = ({ quoted, made }, key) => quoted.has(key) || made.some(set => key.startsWith(`${set}.`))

test('every key that the page uses is there, and every one that is there is used', async () => {
  const all = await used((await readdir(folder, { recursive: true })).filter(name => name.endsWith('.js') && !name.startsWith('lang/')))
  const sets = new Set(Object.keys(en).filter(key => key.includes('.')).map(key => key.split('.')[0]))
  for (const key of [...all.called, ...[...all.quoted].filter(text => text.includes('.') && sets.has(text.split('.')[0]))]) {
    assert.ok(Object.hasOwn(en, key), `no text for ${key}`)
  }
  assert.deepEqual(Object.keys(en).filter(key => !needs(all, key)), [])
})

test('the first page has the texts that it needs, and no others', async () => {
  const index = await readFile(path.join(folder, 'index.html'), 'utf8')
  const first = await used([...index.matchAll(/modulepreload" href="((?!lang)[^"]+)"/g)].map(match => match[1]))
  assert.deepEqual(Object.keys(en).filter(key => needs(first, key)), english.first)
})
