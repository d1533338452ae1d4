"""The functions of Spark that a query may call, by name in lower case, each with its result's type.

``=`` is the type of the first argument, and "" one that ``sql_types`` finds from the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping


def _by_name(names_by_type: Mapping[str, str]) -> Mapping[str, str]:
    return {name: type_ for type_, names in names_by_type.items() for name in names.split()}


AGGREGATES = _by_name(
    {
        "bigint": "approx_count_distinct count count_if regr_count",
        "boolean": "any bool_and bool_or every some",
        "double": """corr covar_pop covar_samp kurtosis percentile percentile_cont skewness std
        stddev stddev_pop stddev_samp var_pop var_samp variance""",
        "string": "listagg string_agg",
        "=": """any_value bit_and bit_or bit_xor first first_value last last_value max max_by min
        min_by mode percentile_disc""",
        "": """array_agg avg collect_list collect_set grouping grouping_id mean median
        percentile_approx regr_avgx regr_avgy regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
        regr_syy sum try_avg try_sum""",
    }
)
WINDOW_FUNCTIONS = _by_name(
    {
        "double": "cume_dist percent_rank",
        "int": "dense_rank ntile rank row_number",
        "=": "lag lead nth_value",
    }
)
GENERATORS = _by_name({"": "explode explode_outer inline inline_outer posexplode posexplode_outer"})
SCALARS = _by_name(
    {
        "array<string>": "json_object_keys regexp_extract_all split xpath",
        "bigint": """bigint crc32 factorial to_unix_timestamp unix_micros unix_millis unix_seconds
        unix_timestamp xxhash64""",
        "binary": "binary encode to_binary unbase64 unhex",
        "boolean": """array_contains arrays_overlap boolean contains endswith equal_null forall
        isnan isnotnull isnull luhn_check map_contains_key regexp_like startswith""",
        "date": """add_months current_date date date_add date_from_unix_date date_sub last_day
        make_date next_day to_date trunc try_to_date""",
        "double": """acos asin atan atan2 cbrt cos cosh cot degrees double e exp expm1 hypot ln log
        log10 log1p log2 months_between pi pow power radians rint sign signum sin sinh sqrt tan tanh
        """,
        "float": "float",
        "int": """array_size ascii bit_count bit_length cardinality char_length character_length
        date_diff datediff day dayofmonth dayofweek dayofyear find_in_set hash hour instr int
        json_array_length len length levenshtein locate minute month octet_length position quarter
        regexp_count regexp_instr second size unix_date weekday weekofyear year""",
        "smallint": "smallint",
        "string": """base64 bin btrim char chr concat_ws conv date_format dayname format_number
        from_unixtime get_json_object hex initcap lcase left lower lpad ltrim md5 monthname
        parse_url printf regexp_extract regexp_replace regexp_substr repeat replace right rpad rtrim
        sha sha1 sha2 soundex space split_part string substr substring substring_index to_char
        to_json translate trim typeof ucase upper url_decode url_encode xpath_string""",
        "timestamp": """current_timestamp date_trunc from_utc_timestamp make_timestamp now timestamp
        timestamp_micros timestamp_millis timestamp_seconds to_timestamp to_utc_timestamp
        try_to_timestamp""",
        "tinyint": "tinyint",
        "=": """abs array_append array_compact array_distinct array_except array_insert
        array_intersect array_prepend array_remove array_sort array_union filter ifnull map_filter
        nanvl negative nullif nullifzero nvl positive reverse shiftleft shiftright slice sort_array
        zeroifnull""",
        "": """acosh aggregate array array_join array_max array_min array_position array_repeat
        asinh atanh bit_get bround ceil ceiling coalesce concat csc date_part dateadd datepart
        decimal decode element_at elt flatten floor from_json get greatest if least make_interval
        map map_concat map_entries map_from_arrays map_from_entries map_keys map_values map_zip_with
        mask mod named_struct nvl2 overlay pmod round sec sequence shiftrightunsigned str_to_map
        struct to_number transform transform_keys transform_values try_add try_divide try_element_at
        try_multiply try_subtract try_to_binary try_to_number width_bucket xpath_boolean
        xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short zip_with""",
    }
)
FUNCTIONS = {**AGGREGATES, **WINDOW_FUNCTIONS, **GENERATORS, **SCALARS}
