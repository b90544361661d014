"""What a query may call: functions of its arguments, by the names that polars gives them.

Nothing that yields a table is here, and nothing that makes rows out of a number: what a query reads are the tables of
the profile. A name that a version of polars does not know is refused by polars.
"""

from __future__ import annotations

from typing import Final

_OF_ROWS = """
any_value approx_count_distinct array_agg avg bool_and bool_or corr count covar covar_pop covar_samp every first last
max median min mode quantile quantile_cont quantile_disc std stddev stddev_pop stddev_samp stdev stdev_samp string_agg
sum var var_pop var_samp variance
"""
_OF_WINDOWS = """
cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
"""
_OF_NUMBERS = """
abs acos acosd asin asind atan atan2 atan2d atand bit_and bit_count bit_not bit_or bit_xor cbrt ceil ceiling cos cosd
cot cotd degrees div exp floor ln log log10 log1p log2 mod pi pow power radians round sign sin sind sqrt square tan
tand trunc truncate
"""
_OF_TEXTS = """
bit_length btrim char_length character_length concat concat_ws ends_with initcap left len length lower lpad ltrim
normalize octet_length position regexp_like replace reverse right rpad rtrim split_part split_to_array starts_with
string_to_array strpos substr substring trim upper
"""
_OF_TIMES = """
date date_part date_trunc datetime extract strftime strptime time timestamp
"""
_OF_LISTS = """
array array_contains array_get array_length array_lower array_max array_mean array_median array_min array_reverse
array_sum array_to_string array_unique array_upper explode unnest
"""
_OF_VALUES = """
cast coalesce columns cube greatest grouping grouping_id if ifnull least nullif rollup struct try_cast
"""

FUNCTIONS: Final = frozenset(
    " ".join((_OF_ROWS, _OF_WINDOWS, _OF_NUMBERS, _OF_TEXTS, _OF_TIMES, _OF_LISTS, _OF_VALUES)).split()
)

_TYPES = """
bigint char decimal double float int integer numeric real smallint tinyint varchar
"""
_WORDS = """
all and any as between by case distinct else except exclude exists filter from having ilike in intersect is join like
limit materialized not offset on or order over qualify regexp rename rlike select sets similar some then to union using
values when where with
"""

BEFORE_PARENTHESES: Final = frozenset((_WORDS + _TYPES).split())
"""Words of the language, and types, that may stand before parentheses and call nothing."""
