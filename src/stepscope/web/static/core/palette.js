/** The colours of accounting categories, for pages and trace alike: one list per palette and shade. */

/** @typedef {Record<string, string>} Colours by category */

/**
 * Colours of work differ from each other, and so do those of waiting, which is hatched besides; those of the palette
 * `blind` do so for every kind of colour vision: found by search from Okabe and Ito's (2008), whom the names stay near
 * where that leaves room.
 */
const CATEGORIES = /** @type {Record<'standard'|'blind', Record<'light'|'dark', Colours>>} */ ({
  standard: {
    light: {
      compute: '#009e73', host_compute: '#009e73', memset: '#4b9570', collective: '#0072b2',
      collective_transfer: '#3a8cc9', collective_wait: '#5d7fb8', copy_h2d: '#2b93c4', copy_d2h: '#1f7d96',
      copy_d2d: '#2f958c', copy_p2p: '#5f7f95', input: '#d55e00', infeed: '#c8753a', sync: '#b8558f',
      launch: '#bb8000', launch_latency: '#9c7a1c', python: '#8a7f00', compile: '#8c4a1f', graph_build: '#a66b3a',
      allocator: '#7a7a1f', copy_staging: '#2b7f6f', transfer: '#2f83a5', checkpoint_io: '#882255', gc: '#aa4499',
      profiler: '#777777', dependency: '#332288', device_latency: '#6b7683', unknown_host: '#5f6670',
      unknown_device: '#868c94', unrecorded: '#5d8a3c', host_memory: '#6a51a3', memory_space: '#00695c',
      peer: '#283593',
    },
    dark: {
      compute: '#009e73', host_compute: '#009e73', memset: '#7cc9ab', collective: '#0f77b8',
      collective_transfer: '#3f94c8', collective_wait: '#86b9dc', copy_h2d: '#56b4e9', copy_d2h: '#88ccee',
      copy_d2d: '#44aa99', copy_p2p: '#a8d8f0', input: '#d55e00', infeed: '#e5883f', sync: '#b8558f',
      launch: '#e69f00', launch_latency: '#f0c75e', python: '#d6c400', compile: '#b9713f', graph_build: '#b87d4b',
      allocator: '#8f8f2a', copy_staging: '#3a8f86', transfer: '#69b7d6', checkpoint_io: '#c2578c', gc: '#b14ba0',
      profiler: '#808080', dependency: '#7f74d8', device_latency: '#a5adb7', unknown_host: '#8d949d',
      unknown_device: '#bcc2ca', unrecorded: '#a6c96a', host_memory: '#b39ddb', memory_space: '#4db6ac',
      peer: '#9fa8da',
    },
  },
  blind: {
    light: {
      compute: '#008147', host_compute: '#008147', memset: '#321600', collective: '#004f8f',
      collective_transfer: '#7950cd', collective_wait: '#001f3a', copy_h2d: '#2a91d2', copy_d2h: '#8a898e',
      copy_d2d: '#1e4410', copy_p2p: '#5f4c54', input: '#df650c', infeed: '#6c2400', sync: '#95356f',
      launch: '#6d4a00', launch_latency: '#9d6852', python: '#766600', compile: '#460900', graph_build: '#b27f5e',
      allocator: '#868a8f', copy_staging: '#002727', transfer: '#11648d', checkpoint_io: '#d255c1', gc: '#580059',
      profiler: '#6f7488', dependency: '#2e187f', device_latency: '#4c8bdb', unknown_host: '#3a4249',
      unknown_device: '#3e4594', unrecorded: '#d71f23', host_memory: '#810cbf', memory_space: '#100719',
      peer: '#415af6',
    },
    dark: {
      compute: '#5cd8a6', host_compute: '#5cd8a6', memset: '#7c764a', collective: '#3c9de2',
      collective_transfer: '#bfbbfe', collective_wait: '#a2f6fe', copy_h2d: '#1e7bad', copy_d2h: '#999993',
      copy_d2d: '#e5f595', copy_p2p: '#e3b83a', input: '#c55500', infeed: '#a0865a', sync: '#be5995',
      launch: '#bf860d', launch_latency: '#f2ca62', python: '#b8a933', compile: '#eda374', graph_build: '#ec6b83',
      allocator: '#7c754e', copy_staging: '#76bcae', transfer: '#8edffe', checkpoint_io: '#d9a0e3', gc: '#df77d0',
      profiler: '#ededee', dependency: '#6e6ad4', device_latency: '#e0d7bd', unknown_host: '#8e99a0',
      unknown_device: '#bcc7ce', unrecorded: '#bc9203', host_memory: '#db06c4', memory_space: '#5387fb',
      peer: '#acff4c',
    },
  },
});

/**
 * The colour of each category.
 * @param {string} palette
 * @param {string} theme
 */
export function categoryColours(palette, theme) {
  return CATEGORIES[palette === 'blind' ? 'blind' : 'standard'][theme === 'light' ? 'light' : 'dark'];
}
